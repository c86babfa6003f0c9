/** `OlderNodes` tells a purchase whether nodes of version 0.1.0 run. The test plays Postgres. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { OlderNodes } from '../../../src/postgres/older-nodes.ts';
import { elapse, freezeTime } from '../../support/engine/frozen-time.ts';

const ONE = { rows: [{ node: 'host:1', leasedUntil: new Date() }] };

beforeEach(() => freezeTime());
afterEach(() => {
  vi.useRealTimers();
});

function nodes() {
  const answers: ((found: { rows: object[] }) => void)[] = [];
  const raw = vi.fn(() => new Promise((resolve) => answers.push(resolve)));
  return { answers, raw, older: new OlderNodes({ raw } as unknown as Database) };
}

it('all that ask while the leases are read get what was read', async () => {
  const { answers, raw, older } = nodes();
  const told = [older.areRunning(), older.areRunning()];
  answers[0]!(ONE);
  expect(await Promise.all(told)).toEqual([true, true]);
  expect(await older.areRunning()).toBe(true);
  expect(raw).toHaveBeenCalledTimes(1);
});

it('while Postgres does not answer, nobody waits longer than half a second, and the last answer counts', async () => {
  const { answers, raw, older } = nodes();
  const first = older.areRunning();
  answers[0]!(ONE);
  expect(await first).toBe(true);
  await elapse(2_001);
  const told = vi.fn();
  void older.areRunning().then(told);
  await elapse(499);
  expect(told).not.toHaveBeenCalled();
  await elapse(10);
  expect(told).toHaveBeenCalledWith(true);
  expect(raw).toHaveBeenCalledTimes(2);
});
