/**
 * How long a round of the head takes: a head in this process serves the queue, and its statements are watched. The node's own head works
 * beside it, as after a change of the head. Both find the same, because no unit is free. Postgres says that one is, as for a moment after
 * each return: otherwise most rounds would leave the queue out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { LocalLocks } from '../../src/postgres/sale-locks.ts';
import { QueueHead } from '../../src/queue/head/head.ts';
import type { HeadEvents } from '../../src/queue/head/head-events.ts';
import { BenchFailure } from '../support/failure.ts';
import { rounded } from '../support/figures.ts';
import { median } from '../support/median.ts';
import type { Stage } from './stage.ts';

export interface HeadRounds {
  /** From the begin of the first statement of a round to the end of its last. */
  readonly p50Ms: number;
  readonly maxMs: number;
  readonly rounds: number;
}

/** The head rests for 250 ms, and its statements follow each other at once. */
const PAUSE_MS = 120;
const WATCHED_MS = 8_000;
const TAKE_TIMEOUT_MS = 10_000;
const MAX_LOG_ORDERS = 1_000_000;

export async function measureHeadRounds(
  { stores, db, keyPrefix, parameters }: Stage,
  saleId: string,
): Promise<HeadRounds> {
  const url = await databaseUrl(stores, db);
  const own = openDatabase({ url, maxConnections: 4 });
  const backend = await RedisBackend.open({
    url: stores.redis.url,
    keyPrefix,
    takeTimeoutMs: TAKE_TIMEOUT_MS,
    maxLogOrders: MAX_LOG_ORDERS,
  });
  const statements: { began: number; ended: number }[] = [];
  const underWay = new Map<string, number>();
  own.on('query', ({ __knexQueryUid: id }) => underWay.set(id, performance.now()));
  own.on('query-response', (_, { __knexQueryUid: id }) =>
    statements.push({ began: underWay.get(id)!, ended: performance.now() }),
  );
  const buy = () => Promise.reject(new BenchFailure('no unit is free, and the head wants to buy'));
  const failures: unknown[] = [];
  const locks = new LocalLocks();
  const head = new QueueHead({ db: own, backend, locks, buy, events: eventsTo(failures) });
  const freeUnits = (units: number) => db.raw('UPDATE sales SET stock = ? WHERE id = ?', [units, saleId]);
  try {
    await freeUnits(1);
    head.start();
    await delay(parameters.waiting < 100_000 ? WATCHED_MS / 4 : WATCHED_MS);
    await head.stop();
    await freeUnits(0);
  } finally {
    await Promise.all([own.destroy(), backend.close()]);
  }
  if (failures.length > 0) throw new BenchFailure(`the head failed: ${String(failures[0])}`);
  const tookMs = roundsOf(statements);
  if (tookMs.length === 0) throw new BenchFailure('the head made no round');
  return { p50Ms: rounded(median(tookMs), 1), maxMs: rounded(Math.max(...tookMs), 1), rounds: tookMs.length };
}

function roundsOf(statements: readonly { began: number; ended: number }[]): number[] {
  const rounds: { began: number; ended: number }[] = [];
  for (const { began, ended } of statements.toSorted((a, b) => a.began - b.began)) {
    const last = rounds.at(-1);
    if (last && began - last.ended < PAUSE_MS) last.ended = Math.max(last.ended, ended);
    else rounds.push({ began, ended });
  }
  return rounds.map(({ began, ended }) => ended - began);
}

async function databaseUrl({ postgres }: Stage['stores'], db: Stage['db']): Promise<string> {
  const { rows } = await db.raw('SELECT current_database() AS name');
  const url = new URL(postgres.url);
  url.pathname = `/${rows[0].name}`;
  return url.href;
}

function eventsTo(failures: unknown[]): HeadEvents {
  const failed = ({ error }: { error: unknown }) => failures.push(error);
  return {
    ...{ offered: () => {}, passedOver: () => {}, delayed: () => {}, drawn: () => {} },
    ...{ saleFailed: failed, crashed: failed },
  };
}
