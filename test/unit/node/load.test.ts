import { expect, test } from 'vitest';
import { crowdWatch } from '../../../src/node/worker/load.ts';
import type { RunningWorker } from '../../../src/node/worker/worker.ts';

const workers = (...shares: number[]) =>
  shares.map((share) => ({ busyShare: () => share }) as unknown as RunningWorker);

test.each([
  { shares: [], isLively: false, isCrowded: false },
  { shares: [0.1, 0.1], isLively: false, isCrowded: false },
  { shares: [0.1, 0.5], isLively: true, isCrowded: false },
  { shares: [0.9, 0.3], isLively: true, isCrowded: true },
])('workers that are busy for $shares of their time', ({ shares, isLively, isCrowded }) => {
  const crowd = crowdWatch(workers(...shares));
  expect({ isLively: crowd.isLively(), isCrowded: crowd.isCrowded() }).toEqual({ isLively, isCrowded });
});

test('both questions are answered from one measurement, which begins anew with each look at a worker', () => {
  let looks = 0;
  const crowd = crowdWatch([{ busyShare: () => ++looks } as unknown as RunningWorker]);
  crowd.isLively();
  crowd.isCrowded();
  expect(looks).toBe(1);
});
