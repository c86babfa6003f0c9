import { expect, it, vi } from 'vitest';
import { TickScheduler } from '../../../src/lib/tick-scheduler.ts';

it('resumes all callers of a turn together, by one callback, and later ones by another', async () => {
  const immediate = vi.spyOn(globalThis, 'setImmediate');
  try {
    const ticks = new TickScheduler();
    const resumed: string[] = [];
    const wait = (name: string) => ticks.next().then(() => resumed.push(name));
    const first = [wait('a'), wait('b')];
    await Promise.resolve();
    expect([resumed, immediate.mock.calls.length]).toEqual([[], 1]);
    await Promise.all(first);
    expect(resumed).toEqual(['a', 'b']);
    await wait('c');
    expect([resumed, immediate.mock.calls.length]).toEqual([['a', 'b', 'c'], 2]);
  } finally {
    immediate.mockRestore();
  }
});
