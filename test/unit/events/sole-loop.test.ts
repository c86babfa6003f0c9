import { expect, test, vi } from 'vitest';
import { SoleLoop, type SoleLoopOptions } from '../../../src/events/sole-loop.ts';
import { LocalLocks } from '../../../src/postgres/sale-locks.ts';
import { until } from '../../support/until.ts';

/** @param step returns how long to rest */
function aLoop(
  step: () => number,
  backpressure: SoleLoopOptions['backpressure'],
  locks = new LocalLocks(),
): SoleLoop {
  return new SoleLoop({
    locks,
    name: ':work',
    backpressure,
    step: async () => step(),
    crashed: (error) => expect.unreachable(String(error)),
  });
}

test('a loop that has yielded to buyers for its limit does not yield again until its work is done', async () => {
  const done: string[] = [];
  const rests = [0, 0, 1];
  const step = () => {
    done.push('step');
    return rests.shift() ?? 1;
  };
  const isLoadHigh = () => {
    done.push('looks at the load');
    return true;
  };
  const loop = aLoop(step, { isLoadHigh, maxMs: 1 });
  loop.start();
  await until(() => done.length >= 6, { what: 'the loop yields again' });
  await loop.stop();
  expect(done.slice(0, 6)).toEqual([
    'looks at the load',
    ...['step', 'step', 'step'],
    'looks at the load',
    'step',
  ]);
});

test('the lock is held while the loop works, and free after it has ended', async () => {
  let steps = 0;
  const loop = aLoop(() => ++steps, { isLoadHigh: () => false, maxMs: 1 });
  loop.start();
  await until(() => steps > 0, { what: 'a step' });
  expect(loop.isWorking).toBe(true);
  await loop.stop();
  expect(loop.isWorking).toBe(false);
});

test('a loop that has lost its lock makes no step until it has the lock again', async () => {
  const locks = new LocalLocks();
  let [steps, isLost] = [0, false];
  locks.holds = async () => !isLost;
  const loop = aLoop(() => ++steps && 1, { isLoadHigh: () => false, maxMs: 1 }, locks);
  loop.start();
  await until(() => steps > 0, { what: 'a step' });
  const tried = vi.spyOn(locks, 'tryLock').mockResolvedValue(false);
  isLost = true;
  await until(() => tried.mock.calls.length > 0, { what: 'the loop tries the lock' });
  const before = steps;
  expect(loop.isWorking).toBe(false);
  await until(() => tried.mock.calls.length > 1, { what: 'the loop tries the lock again' });
  expect(steps).toBe(before);
  isLost = false;
  tried.mockRestore();
  await until(() => steps > before, { what: 'a step with the new lock' });
  await loop.stop();
});

test('a loop whose steps fail counts as working, until another one has the lock', async () => {
  const locks = new LocalLocks();
  let failures = 0;
  const loop = new SoleLoop({
    locks,
    name: ':work',
    backpressure: { isLoadHigh: () => false, maxMs: 1 },
    step: async () => {
      throw new Error('it fails');
    },
    crashed: () => ++failures,
  });
  loop.start();
  await until(() => failures === 2, { what: 'it has failed and rests' });
  expect(loop.isWorking).toBe(true);
  expect(await locks.tryLock(':work'), 'another one may work meanwhile').toBe(true);
  await until(() => !loop.isWorking, { what: 'it has noticed the other one' });
  await loop.stop();
  expect(failures).toBe(2);
});

test('a loop that can’t ask for its lock counts as working, until another one has the lock', async () => {
  const locks = new LocalLocks();
  let [steps, failures, isAway] = [0, 0, false];
  locks.holds = async () => !isAway;
  const loop = new SoleLoop({
    locks,
    name: ':work',
    backpressure: { isLoadHigh: () => false, maxMs: 1 },
    step: async () => ++steps && 1,
    crashed: () => ++failures,
  });
  loop.start();
  await until(() => steps > 0, { what: 'a step' });
  const tried = vi.spyOn(locks, 'tryLock').mockRejectedValue(new Error('Postgres is away'));
  isAway = true;
  for (let count = 1; count <= 3; count++) {
    await until(() => failures >= count, { what: 'it has failed and rests' });
    expect(loop.isWorking).toBe(true);
  }
  tried.mockResolvedValue(false);
  await until(() => !loop.isWorking, { what: 'it has noticed the other one' });
  tried.mockRejectedValue(new Error('Postgres is away'));
  await until(() => failures >= 4, { what: 'it has failed again' });
  expect(loop.isWorking, 'the other one works').toBe(false);
  await loop.stop();
});
