/** Order ids: from a counter in Redis, as in many shops, or made in the process. */
import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { ORDER_ID_EPOCH_MS, OrderIds } from '../../src/engine/order-id.ts';
import type { IdTask } from './tasks.ts';

const SECONDS_SHIFT = 32n;

export type NextId = () => Promise<unknown> | string;

export function ids({ kind }: IdTask, redis: Redis): NextId {
  if (kind === 'stockade ids') {
    const own = new OrderIds({ key: randomBytes(32), worker: 1 });
    return () => own.next();
  }
  return async () => {
    const now = Date.now();
    const seconds = BigInt(Math.floor((now - ORDER_ID_EPOCH_MS) / 1_000));
    const day = new Date(now).toISOString().slice(0, 10);
    const count = BigInt(await redis.incr(`{orders}:${day}`));
    return ((seconds << SECONDS_SHIFT) | count).toString();
  };
}
