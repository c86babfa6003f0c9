import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { NotExecuted } from '../../../src/engine/errors.ts';
import { LockConnection } from '../../../src/locks/lock-connection.ts';
import { lockKeys } from '../../../src/locks/lock-keys.ts';
import { lockTimes } from '../../../src/locks/lock-limits.ts';

test('a command on an ended connection was certainly not executed', async () => {
  const redis = new Redis({ lazyConnect: true, enableOfflineQueue: false });
  redis.disconnect();
  const connection = new LockConnection(redis, lockTimes(1_000));
  await expect(connection.acquire(lockKeys('till'), 'anna')).rejects.toThrow(NotExecuted);
  await expect(connection.release(lockKeys('till'), 'anna')).rejects.toThrow(/connection is (end|close)/);
});
