import { expect } from 'vitest';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { until } from '../fixtures.ts';
import type { Shop } from './shop.ts';

/** Long enough that a change is in Postgres by then, and waits. */
export const IN_TIME_MS = 2_000;

interface LateChange {
  /** Tables whose rows are locked until the change is late. */
  readonly locked: readonly string[];
  readonly change: (latestMs: number) => Promise<unknown>;
  /** All rows that it may change. */
  readonly everything: () => Promise<unknown>;
}

/** Expects that a change that gets the lock of its row after its latest time is refused, and that it is made in time. */
export async function expectRefusedIfLate(
  shop: Shop,
  { locked, change, everything }: LateChange,
): Promise<void> {
  const before = await everything();
  const lock = await shop.db.transaction();
  for (const table of locked) await lock.raw(`SELECT 1 FROM ${table} FOR UPDATE`);
  const latestMs = monotonicMs() + IN_TIME_MS;
  const made = change(latestMs).catch((error: unknown) => error);
  await until(() => shop.isBlocked(), { what: 'it waits for the lock' });
  await until(() => monotonicMs() > latestMs, { what: 'it is late' });
  await lock.rollback();
  expect(await made).toMatchObject({ code: 'timed_out' });
  expect(await everything()).toEqual(before);
  await change(monotonicMs() + 60_000);
  expect(await everything()).not.toEqual(before);
}
