/**
 * `npm run chaos` in its shortest form: real processes, a few faults one after another, and the same checker. Those that
 * make Redis itself lose writes have a round of their own, as the checker forgives there what it must not forgive elsewhere.
 * Nothing is said of how long anything took.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { brokenInQueue, runQueueRound } from '../chaos/queue/round.ts';
import { QUEUE_SCHEDULES } from '../chaos/queue/schedules.ts';
import { brokenIn, type RoundResult, runRound } from '../chaos/round.ts';
import { namedAmong, scheduleNamed } from '../chaos/schedules.ts';
import { seed } from '../support/fixtures.ts';
import { PostgresServer } from '../support/servers/postgres-server.ts';

const SHORT = { segments: 4, limit: 2, customers: 16, holdMs: 300, servedBetween: 40 };
const SHORT_QUEUE = {
  ...{ people: 400, connections: 64, stock: 60, segments: 4 },
  ...{ offerSeconds: 6, presenceSeconds: 20, betweenMs: 3_000, holdMs: 300 },
};
const LIMIT_MS = 600_000;

let postgres: PostgresServer;

beforeAll(async () => {
  postgres = await PostgresServer.start();
});

afterAll(() => postgres[Symbol.asyncDispose]());

/** Faults on a sale of its own, of whose promises none is broken. */
async function kept(names: readonly string[], stock: number): Promise<RoundResult> {
  const schedules = names.map(scheduleNamed);
  const result = await runRound(schedules, postgres, { ...SHORT, stock, seed: seed() });
  expect(brokenIn(schedules, result)).toEqual([]);
  expect(result).toMatchObject({ sold: stock } satisfies Partial<RoundResult>);
  expect(result.settled).toBe(result.unknown);
  return result;
}

test('nodes die, replies are lost, Redis is full: all promises hold', { timeout: LIMIT_MS }, async () => {
  const { strikes, unknown } = await kept(['kill-serve', 'lose-take-replies', 'full-memory'], 1_200);
  expect(strikes).toBe(5);
  expect(unknown).toBeGreaterThan(0);
});

test('Redis fails over with a loss: the lost orders are reported, all other promises hold', {
  timeout: LIMIT_MS,
}, async () => {
  expect((await kept(['failover-lossy'], 500)).strikes).toBe(1);
});

test('people wait in a queue while a node dies, and the offers under way are lost: all promises of the queue hold', {
  timeout: LIMIT_MS,
}, async () => {
  const schedules = ['kill-serve', 'lose-newest'].map((name) => namedAmong(QUEUE_SCHEDULES, name));
  const result = await runQueueRound(schedules, postgres, { ...SHORT_QUEUE, seed: seed() });
  expect(brokenInQueue(result)).toEqual([]);
  expect(result.strikes).toBe(3);
  expect(result.offers).toBeGreaterThan(result.stock);
});
