import { expect, test } from 'vitest';
import { watchLoad } from '../../../src/node/worker/load.ts';
import type { RunningWorker } from '../../../src/node/worker/worker.ts';

const workers = (...shares: number[]) =>
  shares.map((share) => ({ busyShare: () => share }) as unknown as RunningWorker);

test.each([
  { shares: [], isElevated: false, isHigh: false },
  { shares: [0.1, 0.1], isElevated: false, isHigh: false },
  { shares: [0.1, 0.5], isElevated: true, isHigh: false },
  { shares: [0.9, 0.3], isElevated: true, isHigh: true },
])('workers that are busy for $shares of their time', ({ shares, isElevated, isHigh }) => {
  const load = watchLoad(workers(...shares));
  expect({ isElevated: load.isElevated(), isHigh: load.isHigh() }).toEqual({ isElevated, isHigh });
});

test('both questions are answered from one measurement, which starts again at each reading of a worker', () => {
  let looks = 0;
  const load = watchLoad([{ busyShare: () => ++looks } as unknown as RunningWorker]);
  load.isElevated();
  load.isHigh();
  expect(looks).toBe(1);
});
