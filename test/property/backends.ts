import type { Backend } from '../../src/engine/contract.ts';
import { MemoryBackend } from '../../src/engine/memory/memory-backend.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { freshPrefix, redisUrl } from '../support/fixtures.ts';

/** More than any run writes. */
const MAX_LOG_ORDERS = 100_000;
/** Time is frozen in these tests, so no take times out. */
const TAKE_TIMEOUT_MS = 60_000;

export const MEMORY = {
  name: 'memory',
  open: async (): Promise<Backend> => new MemoryBackend({ maxLogOrders: MAX_LOG_ORDERS }),
};

export const REDIS = {
  name: 'redis',
  open: (): Promise<Backend> =>
    RedisBackend.open({
      url: redisUrl(),
      keyPrefix: freshPrefix(),
      takeTimeoutMs: TAKE_TIMEOUT_MS,
      maxLogOrders: MAX_LOG_ORDERS,
    }),
};
