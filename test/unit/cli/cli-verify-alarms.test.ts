import { expect, test } from 'vitest';
import { VerifyAlarms } from '../../../src/cli/verify-alarms.ts';
import type { Cause, VerifyReport } from '../../../src/operations/sale-operations.ts';

function report(...causes: Cause[]): VerifyReport {
  const differences = causes.map((cause) => ({ cause, units: 0, isFault: cause !== 'in_flight', what: '' }));
  const faults = differences.filter(({ isFault }) => isFault);
  return { saleId: 'x', ok: faults.length === 0, differences } as unknown as VerifyReport;
}

test('a fault is an alarm, work under way is none', () => {
  const alarms = new VerifyAlarms();
  expect(alarms.judge(report())).toBe(false);
  expect(alarms.judge(report('in_flight'))).toBe(false);
  expect(alarms.judge(report('unexplained'))).toBe(true);
  expect(alarms.judge(report('rebuild_pending', 'foreign_postgres'))).toBe(true);
});

test('a rebuild is an alarm if it lasts longer than two minutes', () => {
  const alarms = new VerifyAlarms();
  const building = report('rebuild_pending');
  expect([0, 60_000, 120_001].map((ms) => alarms.judge(building, ms))).toEqual([false, false, true]);
  expect(alarms.judge(report(), 130_000)).toBe(false);
  expect(alarms.judge(building, 140_000)).toBe(false);
});

test('a rebuild is no alarm when it is seen first, however long the pause before was', () => {
  const alarms = new VerifyAlarms();
  expect(alarms.judge(report(), 0)).toBe(false);
  expect(alarms.judge(report('rebuild_pending'), 600_000)).toBe(false);
});
