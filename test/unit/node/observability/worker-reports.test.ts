/** `/metrics` of a node, while a worker hangs. */
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { WorkerReports } from '../../../../src/node/observability/worker-reports.ts';
import type { WorkerMetrics } from '../../../../src/node/worker/worker.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const report = (refills: number) => ({ refills, thread: [{ name: 'lag' }] }) as unknown as WorkerMetrics;

test('a worker that hangs keeps its last counts, hides no other worker, and is counted', async () => {
  const registry = new Registry();
  let refills = 1;
  let hangs = false;
  const workers = [
    { number: 7, metrics: async () => report(refills) },
    { number: 8, metrics: () => (hangs ? new Promise<never>(() => {}) : Promise.resolve(report(5))) },
    { number: 9, metrics: () => new Promise<never>(() => {}) },
  ];
  const reports = new WorkerReports(workers, registry);
  const read = async () => {
    const reading = reports.read();
    await vi.advanceTimersByTimeAsync(3_000);
    const silent = /^stockade_workers_silent (\d+)$/m.exec(await registry.metrics())?.[1];
    return { silent, reports: await reading };
  };
  expect(await read()).toEqual({ silent: '1', reports: [report(1), report(5)] });
  hangs = true;
  refills = 2;
  expect(await read()).toEqual({ silent: '2', reports: [report(2), { refills: 5 }] });
  hangs = false;
  expect(await read()).toEqual({ silent: '1', reports: [report(2), report(5)] });
});
