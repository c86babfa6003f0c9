/** How long a lane keeps the lock of its segment. The test plays the lock. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HOLD_MAX_MS, SegmentHold } from '../../../../src/engine/locked/segment-hold.ts';
import type { LockHandle } from '../../../../src/locks/lock-handle.ts';
import { KEEP_MAX_MS } from '../../../../src/locks/lock-limits.ts';
import { freezeTime, settledTurns, turn } from '../../../support/engine/frozen-time.ts';

beforeEach(() => freezeTime());
afterEach(() => {
  vi.useRealTimers();
});

/** A hold whose lock is always free. The handles are numbered by their tokens. */
function aHold({ releasing = async () => {} }: { releasing?: () => Promise<void> } = {}) {
  const events: string[] = [];
  const handles: { token: number; held: boolean }[] = [];
  const hold = new SegmentHold(
    {
      acquire: async () => {
        const handle = { token: handles.length + 1, held: true };
        handles.push(handle);
        events.push(`acquire ${handle.token}`);
        return handle as LockHandle;
      },
      release: async ({ token }) => {
        events.push(`release ${token}`);
        await releasing();
      },
    },
    () => events.push('unused'),
  );
  return { hold, events, handles };
}

const token = async (handle: LockHandle) => handle.token;

describe('the lock of a segment', () => {
  it('is kept no shorter by its lane than by the lock queue of the process', () => {
    expect(HOLD_MAX_MS).toBeGreaterThanOrEqual(KEEP_MAX_MS);
  });

  it('serves batches that follow at once, and is released when none follows', async () => {
    const { hold, events } = aHold();
    expect(await hold.serve(token)).toBe(1);
    expect(await hold.serve(token)).toBe(1);
    expect(events).toEqual(['acquire 1']);
    await settledTurns();
    expect(events.filter((event) => event !== 'unused')).toEqual(['acquire 1', 'release 1']);
    expect(events.at(-1)).toBe('unused');
    expect(await hold.serve(token)).toBe(2);
  });

  it('is kept for two turns from the end of the last batch, not of an earlier one', async () => {
    const { hold, events } = aHold();
    for (let batch = 0; batch < 5; batch++) {
      expect(await hold.serve(token)).toBe(1);
      await turn();
    }
    expect(events).toEqual(['acquire 1']);
  });

  it('is not released while a batch runs or waits', async () => {
    const { hold, events } = aHold();
    const ends: (() => void)[] = [];
    const running = () => hold.serve(() => new Promise<void>((resolve) => ends.push(resolve)));
    await hold.serve(token);
    const batches = [running(), running()];
    await settledTurns();
    expect(events).toEqual(['acquire 1']);
    ends[0]!();
    await settledTurns();
    // The second one runs, and none waits.
    expect([ends.length, events]).toEqual([2, ['acquire 1']]);
    ends[1]!();
    await Promise.all(batches);
    await settledTurns();
    expect(events).toContain('release 1');
  });

  it('goes to others after the longest hold: it is asked for again before it is released', async () => {
    const { hold, events } = aHold();
    await hold.serve(token);
    vi.advanceTimersByTime(HOLD_MAX_MS - 1);
    expect(await hold.serve(token)).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await hold.serve(token)).toBe(2);
    expect(events).toEqual(['acquire 1', 'acquire 2', 'release 1']);
    // The new hold lasts as long.
    vi.advanceTimersByTime(HOLD_MAX_MS - 1);
    expect(await hold.serve(token)).toBe(2);
  });

  it('is acquired again when it was lost', async () => {
    const { hold, handles } = aHold();
    await hold.serve(token);
    handles[0]!.held = false;
    expect(await hold.serve(token)).toBe(2);
  });

  it('is released and acquired again after work that fails, even if its release fails too', async () => {
    const { hold, events } = aHold({ releasing: () => Promise.reject(new Error('no answer')) });
    const failing = hold.serve(() => Promise.reject(new Error('a bug')));
    await expect(failing).rejects.toThrow('a bug');
    expect(await hold.serve(token)).toBe(2);
    await settledTurns();
    expect(events.filter((event) => event !== 'unused')).toEqual([
      'acquire 1',
      'release 1',
      'acquire 2',
      'release 2',
    ]);
  });
});
