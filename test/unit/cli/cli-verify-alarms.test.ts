import { expect, test } from 'vitest';
import { VerifyAlarms } from '../../../src/cli/verify-alarms.ts';
import type { Cause, VerifyReport } from '../../../src/operations/sale-operations.ts';

function report(...causes: Cause[]): VerifyReport {
  const differences = causes.map((cause) => ({ cause, units: 0, isFault: cause !== 'in_flight', what: '' }));
  const faults = differences.filter(({ isFault }) => isFault);
  return { saleId: 'x', ok: faults.length === 0, differences } as unknown as VerifyReport;
}

test('a fault is an alarm, work under way is none', () => {
  const alarms = new VerifyAlarms(5);
  expect(alarms.judge(report())).toBe(false);
  expect(alarms.judge(report('in_flight'))).toBe(false);
  expect(alarms.judge(report('unexplained'))).toBe(true);
  expect(alarms.judge(report('rebuild_pending', 'foreign_postgres'))).toBe(true);
});

test('a rebuild is an alarm if it lasts longer than two minutes', () => {
  const alarms = new VerifyAlarms(60);
  const building = report('rebuild_pending');
  expect([building, building, building].map((each) => alarms.judge(each))).toEqual([false, false, true]);
  expect(alarms.judge(report())).toBe(false);
  expect(alarms.judge(building)).toBe(false);
});
