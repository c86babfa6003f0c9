/**
 * `npm run chaos` in its shortest form: real processes, one sale, a few faults one after another, and the same checker.
 * Nothing is said of how long anything took.
 */
import { expect, test } from 'vitest';
import { brokenIn, type RoundResult, runRound } from '../chaos/round.ts';
import { scheduleNamed } from '../chaos/schedules.ts';
import { seed } from '../support/fixtures.ts';
import { PostgresServer } from '../support/servers/postgres-server.ts';

const SHORT = { stock: 1_500, segments: 4, limit: 2, customers: 16, holdMs: 300, servedBetween: 40 };

test('nodes die, replies are lost, Redis is full and fails over with a loss: all promises hold', async () => {
  const names = ['kill-serve', 'lose-take-replies', 'full-memory', 'failover-lossy'];
  const schedules = names.map(scheduleNamed);
  await using postgres = await PostgresServer.start();
  const result = await runRound(schedules, postgres, { ...SHORT, seed: seed() });
  expect(brokenIn(schedules, result)).toEqual([]);
  expect(result).toMatchObject({ sold: 1_500, strikes: 6 } satisfies Partial<RoundResult>);
  expect(result.unknown).toBeGreaterThan(0);
  expect(result.settled).toBe(result.unknown);
});
