/**
 * One round: faults on a fresh sale, one after another.
 *
 *   customers buy -> [strike -> over -> a customer is answered 201] … -> the rest is sold -> unknown purchases are repeated
 *   -> the logs are drained, verify says ok -> the checker
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { VerifyReport } from '../../src/operations/sale-operations.ts';
import { random } from '../support/random.ts';
import type { PostgresServer } from '../support/servers/postgres-server.ts';
import { until } from '../support/until.ts';
import { judge, readTruth, type Verdict } from './checker.ts';
import { Customers } from './customers.ts';
import { type Progress, type Scene, type Schedule, untilServed } from './schedule.ts';
import { SALE, type SaleSpec, World } from './world.ts';

const RECOVERY_LIMIT_MS = 60_000;
const RUSH_LIMIT_MS = 120_000;
const SETTLE_LIMIT_MS = 60_000;
const VERIFY_LIMIT_MS = 60_000;
export interface RoundOptions extends SaleSpec {
  readonly customers: number;
  /** Duration of a fault that does not end by itself. */
  readonly holdMs: number;
  /** Purchases served before the first strike, and between two. */
  readonly servedBetween: number;
  readonly seed: number;
}

export interface RoundResult extends Verdict {
  readonly strikes: number;
  readonly stock: number;
  readonly served201: number;
  readonly served202: number;
  /** Purchases whose outcome was unknown at some time. */
  readonly unknown: number;
  /** Those of them whose outcome is known now. */
  readonly settled: number;
  readonly refusals: Readonly<Record<string, number>>;
  readonly longestWaitMs: number;
  /** The longest time from the end of a fault to the next `201`. */
  readonly recoveryMs: number;
  /** Complaints of verify at the end; empty if it had none. */
  readonly complaints: readonly string[];
}

export async function runRound(
  schedules: readonly Schedule[],
  postgres: PostgresServer,
  options: RoundOptions,
): Promise<RoundResult> {
  await using world = await World.open(postgres, options);
  await using customers = new Customers({
    doors: world.nodes.map(({ door }) => `http://127.0.0.1:${door.port}`),
    saleId: SALE,
    customers: options.customers,
    reserveFrom: Math.floor(options.stock * 0.75),
    seed: options.seed,
  });
  const { history } = customers;
  const dice = random(options.seed);
  let recoveryMs = 0;
  for (const schedule of schedules) {
    recoveryMs = Math.max(recoveryMs, await strikeAll(schedule, { world, history, random: dice }, options));
  }
  const soldOut = await customers.rush(RUSH_LIMIT_MS);
  await customers.stop();
  const { longestWaitMs } = history;
  await customers.settle(SETTLE_LIMIT_MS);
  if (schedules.some(({ needsRecovery }) => needsRecovery)) await recover(world);
  const complaints = await verified(world);
  const verdict = judge(history, await readTruth(world.databaseUrl), { ...options, soldOut });
  const unknown = history.onceUnknown.length;
  return {
    ...verdict,
    strikes: schedules.reduce((sum, { times }) => sum + times, 0),
    stock: options.stock,
    served201: history.served201,
    served202: history.served202,
    unknown,
    settled: unknown - history.open.length,
    refusals: history.refusals,
    longestWaitMs,
    recoveryMs,
    complaints: soldOut
      ? complaints
      : [...complaints, 'customers were not answered that the sale is sold out'],
  };
}

/** @returns the longest time until a customer was answered 201 again, in milliseconds */
async function strikeAll(
  schedule: Schedule,
  place: Omit<Scene, 'hold'>,
  { holdMs, servedBetween }: RoundOptions,
): Promise<number> {
  let longestMs = 0;
  for (let time = 0; time < schedule.times; time++) {
    let overAtMs: number | undefined;
    const hold = async () => {
      await delay(holdMs);
      overAtMs = performance.now();
    };
    const scene = { ...place, hold };
    await untilServed(scene, servedBetween);
    await schedule.strike(scene, time);
    longestMs = Math.max(longestMs, await timeToRecover(place.history, overAtMs ?? performance.now()));
  }
  return longestMs;
}

export async function timeToRecover(history: Progress, overAtMs: number): Promise<number> {
  await until(() => history.firstCommittedMs(overAtMs) !== undefined, {
    what: 'a customer is answered 201 after the fault',
    timeoutMs: RECOVERY_LIMIT_MS,
  });
  return history.firstCommittedMs(overAtMs)! - overAtMs;
}

async function recover({ nodes }: World): Promise<void> {
  const { ops } = nodes[0]!.node;
  await ops.recover(SALE);
  await until(async () => (await ops.recovery(SALE)).state === 'done', {
    what: 'the recovery is done',
    timeoutMs: RECOVERY_LIMIT_MS,
  });
}

/** @returns the complaints of verify after the logs are drained */
export async function verified({ nodes }: World): Promise<string[]> {
  let last: VerifyReport | undefined;
  const isQuiet = async () => {
    last = await nodes[0]!.node.ops.verify(SALE);
    const waiting = last.identities[1]!.right.filter(({ name }) => name !== 'in segments');
    return last.ok && waiting.every(({ units }) => units === 0);
  };
  try {
    await until(isQuiet, { what: 'verify has no complaints', timeoutMs: VERIFY_LIMIT_MS });
    return [];
  } catch (error) {
    return [String(error), JSON.stringify(last)];
  }
}

/** The promises that a round has broken, in words; none if all were kept. */
export function brokenIn(schedules: readonly Schedule[], result: RoundResult): string[] {
  const { complaints, lostAccepted, unreported } = result;
  const losesWrites = schedules.some((schedule) => schedule.losesWrites);
  const counts: readonly (readonly [string, number])[] = [
    ['oversold', result.oversold],
    ['unsold', result.unsold],
    ['lost 201', result.lostCommitted],
    [losesWrites ? 'lost 202 without a report' : 'lost 202', losesWrites ? unreported : lostAccepted],
    ['buyers above the limit', result.limitBroken],
    ['unsettled', result.unsettled],
    ['refused, but sold', result.falseRefusals],
    ['orders that nobody asked for', result.invented],
    ['keys with two orders', losesWrites ? 0 : result.changed],
  ];
  return [
    ...counts.filter(([, count]) => count > 0).map(([name, count]) => `${count} ${name}`),
    ...complaints,
  ];
}
