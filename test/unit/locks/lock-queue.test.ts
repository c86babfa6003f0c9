/** What is left of a lock in this process. The test plays Redis. */
import { expect, test, vi } from 'vitest';
import { BackendCorrupt } from '../../../src/engine/errors.ts';
import type { LockConnection } from '../../../src/locks/lock-connection.ts';
import { lockKeys } from '../../../src/locks/lock-keys.ts';
import { lockTimes } from '../../../src/locks/lock-limits.ts';
import { LockQueue } from '../../../src/locks/lock-queue.ts';
import type { Wakeups } from '../../../src/locks/wakeups.ts';

/** @param release what Redis does with the release of the lock */
function queueWith(release: () => Promise<number>) {
  const idle = vi.fn();
  const acquire = async () => ({ held: true, token: 1, previous: '' });
  const queue = new LockQueue('till', lockKeys('till'), {
    connection: { acquire, release } as unknown as LockConnection,
    wakeups: { hears: () => false, join() {}, leave() {} } as unknown as Wakeups,
    times: lockTimes(1_000),
    nextOwner: () => 'me',
    idle,
  });
  return { queue, idle };
}

test('a lock that was released is forgotten', async () => {
  const { queue, idle } = queueWith(async () => 0);
  const handle = (await queue.wait({ waitMs: 1_000, tryOnce: false }))!;
  expect(idle).not.toHaveBeenCalled();
  await handle.release();
  expect(idle).toHaveBeenCalledOnce();
});

test('so is one whose release has failed', async () => {
  const fault = new BackendCorrupt('the key holds a list');
  const { queue, idle } = queueWith(() => Promise.reject(fault));
  const handle = (await queue.wait({ waitMs: 1_000, tryOnce: false }))!;
  await expect(handle.release()).rejects.toBe(fault);
  expect(idle).toHaveBeenCalledOnce();
});
