/** Many sales with a queue: what the head costs while nothing happens, and how soon it notices a unit that comes back in one of them. */
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { note } from '../../src/cli/terminal/output.ts';
import { rows } from '../../src/postgres/database.ts';
import { givePlaces } from '../../src/queue/places.ts';
import { BenchFailure } from '../support/failure.ts';
import { count, rounded } from '../support/figures.ts';
import { median } from '../support/median.ts';
import { type Idle, measureIdle } from './idle.ts';
import { giveBack, offeredTo } from './returned-unit.ts';
import type { Stage } from './stage.ts';

const PARALLEL = 8;
const YEAR_S = 31_536_000;
/** Two have offers, one after the other, and the rest wait. */
const PLACES = 4;
/** How many times as long as a measurement. */
const SETTLES = 4;
const LIMIT_MS = 120_000;
const POLL_MS = 50;

export interface ManyQueues {
  readonly sales: number;
  /** Processor time while no sale has a place. */
  readonly empty: Idle | undefined;
  /** Processor time while people wait in each sale, and nobody asks. */
  readonly waiting: Idle | undefined;
  /** The same while people ask for their places in each sale: without the requests themselves. */
  readonly asked: Idle | undefined;
  /** From a unit that is given back to the next offer, one sale after the other, while people ask in all of them. */
  readonly returned: { readonly p50Ms: number; readonly maxMs: number };
}

export async function measureManyQueues(stage: Stage): Promise<ManyQueues> {
  const { sales, returns } = stage.parameters;
  const ids = Array.from({ length: sales }, (_, i) => `many-${i}`);
  const limit = pLimit(PARALLEL);
  await limit.map(ids, (id) =>
    stage.createSale({ ...{ id, stock: 1, queue: 'fifo' }, ...{ presenceSeconds: 0, offerSeconds: YEAR_S } }),
  );
  const empty = await measureSettled(stage);
  await limit.map(ids, (id) => givePlaces(stage.db, id, buyersOf(id)));
  await untilOffered(stage, sales);
  const waiting = await measureSettled(stage);
  await askLong(stage);
  const asked = await measureIdle(stage);
  note(
    `${count(sales)} queues, ms of Node a second: ${empty?.nodeMsPerSecond} while empty, ${waiting?.nodeMsPerSecond} while people wait, ${asked?.nodeMsPerSecond} while they ask`,
  );
  const lay: number[] = [];
  for (const id of ids.slice(0, Math.min(20, returns))) {
    await giveBack(stage, id, `${id}-1`);
    lay.push(await offeredTo(stage, id, 2));
    await delay(Math.random() * 500);
  }
  return {
    sales,
    empty,
    waiting,
    asked,
    returned: { p50Ms: rounded(median(lay), 0), maxMs: rounded(Math.max(...lay), 0) },
  };
}

/** A node does more than usual for sales that are new, or that have just sold. */
async function measureSettled(stage: Stage): Promise<Idle | undefined> {
  await delay(SETTLES * stage.parameters.seconds * 1_000);
  return measureIdle(stage);
}

/** As if a node had just written that somebody asks, for as long as this bench lasts. */
async function askLong({ db }: Stage): Promise<void> {
  await db.raw(
    `INSERT INTO queue_presence (sale_id, period, page, present, since)
     SELECT id, -2, 0, B'0'::bit(4096), now() + interval '1 hour' FROM sales WHERE starts_with(id, 'many-')
     ON CONFLICT (sale_id, period, page) DO UPDATE SET since = excluded.since`,
  );
}

const buyersOf = (saleId: string) =>
  Array.from({ length: PLACES }, (_, i) => ({ buyerId: `${saleId}-${i + 1}`, quantity: 1 }));

async function untilOffered({ db }: Stage, sales: number): Promise<void> {
  const deadline = Date.now() + LIMIT_MS;
  while (Date.now() < deadline) {
    const [found] = await rows<{ offered: string }>(
      db,
      "SELECT count(*)::text AS offered FROM places WHERE starts_with(sale_id, 'many-') AND state = 'offered'",
    );
    if (Number(found!.offered) === sales) return;
    await delay(POLL_MS);
  }
  throw new BenchFailure(`not every queue had an offer within ${LIMIT_MS} ms`);
}
