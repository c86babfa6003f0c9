/**
 * One round: faults on a fresh sale with a queue, one after another.
 *
 *   people ask for places -> [strike -> over] … -> all units are sold for good -> the sale is closed
 *   -> everybody is told an end -> verify says ok -> the checker
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { BY } from '../../support/author.ts';
import { random } from '../../support/random.ts';
import type { PostgresServer } from '../../support/servers/postgres-server.ts';
import { until } from '../../support/until.ts';
import { timeToRecover, verified } from '../round.ts';
import { SALE, World } from '../world.ts';
import { judgeQueue, type QueueVerdict } from './checker.ts';
import { People } from './people.ts';
import type { QueueSchedule } from './schedules.ts';
import { readQueueTruth } from './truth.ts';
import type { FaultTime } from './waits.ts';

const PLACED_LIMIT_MS = 180_000;
const QUIET_LIMIT_MS = 180_000;
const END_LIMIT_MS = 120_000;
const CLOSE_LIMIT_MS = 60_000;
/**
 * How long after a fault people may still wait although units are free, and be overtaken. Processes must start, a shop that has lost
 * data is rebuilt, and a loop that has failed rests for up to five seconds before it tries again.
 */
export const RECOVERY_MS = 15_000;

export interface QueueRoundOptions {
  readonly people: number;
  readonly connections: number;
  readonly stock: number;
  readonly segments: number;
  readonly offerSeconds: number;
  readonly presenceSeconds: number;
  /** From one strike to the next, so that offers go out between them. */
  readonly betweenMs: number;
  /** Duration of a fault that does not end by itself. */
  readonly holdMs: number;
  readonly seed: number;
}

export interface QueueResult extends QueueVerdict {
  readonly strikes: number;
  /** With the units that operators have added. */
  readonly stock: number;
  readonly people: number;
  /** Offers that Postgres has, ended ones too. */
  readonly offers: number;
  readonly accepted: number;
  /** Requests that got no answer. */
  readonly unanswered: number;
  /** Places that ended as absent. */
  readonly absent: number;
  /** The longest time from the end of a fault until Postgres served a person again. */
  readonly recoveryMs: number;
  /** What verify found wrong, and what did not come to its end. */
  readonly complaints: readonly string[];
}

export async function runQueueRound(
  schedules: readonly QueueSchedule[],
  postgres: PostgresServer,
  options: QueueRoundOptions,
): Promise<QueueResult> {
  const { offerSeconds, presenceSeconds, stock, segments } = options;
  const order = schedules.some((schedule) => schedule.order === 'draw') ? 'draw' : 'fifo';
  const queue = { order, offerSeconds, presenceSeconds } as const;
  await using world = await World.open(postgres, { stock, segments, limit: 1, queue });
  await using people = new People({
    doors: world.nodes.map(({ door }) => `http://127.0.0.1:${door.port}`),
    saleId: SALE,
    people: options.people,
    connections: options.connections,
    seed: options.seed,
  });
  const faults: FaultTime[] = [];
  let recoveryMs = 0;
  const dice = random(options.seed);
  await until(() => people.placed >= options.people / 2, {
    what: 'half of the people have places',
    timeoutMs: PLACED_LIMIT_MS,
  });
  for (const schedule of schedules) {
    for (let time = 0; time < schedule.times; time++) {
      const fromMs = Date.now();
      const hold = () => delay(options.holdMs);
      await schedule.strike({ world, history: people, random: dice, hold }, time);
      const overMs = Date.now();
      faults.push({ fromMs, overMs, recoveredMs: overMs + RECOVERY_MS });
      recoveryMs = Math.max(recoveryMs, await timeToRecover(people, performance.now()));
      await delay(options.betweenMs);
    }
  }
  const isQuiet = await soon(untilQuiet(world, people));
  const closedMs = Date.now();
  await close(world);
  const isEnded = await people.hearTheEnd(END_LIMIT_MS);
  await people.stop();
  const complaints = [
    ...(isQuiet ? [] : ['the offers did not come to an end, or units were left']),
    ...(isEnded ? [] : ['people were not told an end in time']),
    ...(await verified(world)),
  ];
  const truth = await readQueueTruth(world.databaseUrl);
  if (schedules.some(({ losesWrites }) => losesWrites) && truth.reportedLost === 0)
    complaints.push('no loss was reported, although Redis has lost offers');
  const verdict = judgeQueue(people.memories, truth, {
    stock,
    faults,
    closedMs,
    presenceMs: presenceSeconds * 1_000,
  });
  return {
    ...verdict,
    strikes: faults.length,
    stock: verdict.sold + verdict.unsold,
    people: options.people,
    offers: truth.orders.filter(({ isRejected }) => !isRejected).length,
    accepted: people.accepted,
    unanswered: people.unanswered,
    absent: truth.places.filter(({ reason }) => reason === 'absent').length,
    recoveryMs,
    complaints,
  };
}

const soon = (ended: Promise<void>) =>
  ended.then(
    () => true,
    () => false,
  );

/** Everybody has a place, no offer is open, and all units are sold. */
async function untilQuiet({ databaseUrl }: World, people: People): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await until(
      async () => {
        if (!people.areOnlyAsking) return false;
        const found = await client.query<{ offered: number; left: number }>(
          `SELECT (SELECT count(*)::integer FROM places WHERE sale_id = $1 AND state = 'offered') AS offered,
             (SELECT stock::float8 FROM sales WHERE id = $1) AS left`,
          [SALE],
        );
        const { offered, left } = found.rows[0]!;
        return offered === 0 && left === 0;
      },
      { what: 'all units are sold for good', timeoutMs: QUIET_LIMIT_MS },
    );
  } finally {
    await client.end();
  }
}

async function close({ nodes }: World): Promise<void> {
  const closed = () =>
    nodes[0]!.node.ops.change(SALE, { action: 'close' }, BY).then(
      () => true,
      () => false,
    );
  await until(closed, { what: 'the sale is closed', timeoutMs: CLOSE_LIMIT_MS });
}

/** The promises that a round has broken, in words; none if all were kept. */
export function brokenInQueue(result: QueueResult): string[] {
  const counts: readonly (readonly [string, number])[] = [
    ['oversold', result.oversold],
    ['unsold', result.unsold],
    ['accepted offers that are no orders', result.lostAccepted],
    ['acceptances refused before the offer was over', result.refusedInTime],
    ['offers that ended before their time', result.lapsedEarly],
    ['offers that ended or were accepted during a pause', result.endedInPause],
    ['present people overtaken', result.overtaken],
    ['places that left although their buyers were there', result.wronglyLeft],
    ['times that a unit lay free too long', result.idle],
    ['answers "hopeless" although a unit could come', result.falselyHopeless],
    ['answers "waiting" although no unit could come', result.falselyHopeful],
    ['people told another rank', result.wrongRanks],
    ['places lost', result.lostPlaces],
    ['buyers with two places', result.doubled],
    ['places told to wait again', result.tookBack],
    ['people without a true end', result.withoutEnd],
    ['places or orders that nobody asked for', result.invented],
  ];
  return [
    ...counts.filter(([, count]) => count > 0).map(([name, count]) => `${count} ${name}`),
    ...result.complaints,
  ];
}
