import type { RedisClient } from '../../redis/clients.ts';
import type { Keys } from './keys.ts';

/**
 * Tells every node that a sale has changed, behind the change. Messages get lost; the count does not, so that a node which
 * reads the same count again has missed nothing.
 */
export async function tellChange(redis: RedisClient, keys: Keys, saleId: string): Promise<void> {
  await Promise.all([redis.incr(keys.changes), redis.publish(keys.sales, saleId)]);
}

/** Units came back: raises the epoch, and tells every node of it. */
export async function reopenSale(redis: RedisClient, keys: Keys, saleId: string): Promise<void> {
  await redis.hincrby(keys.sale(saleId), 'epoch', 1);
  await tellChange(redis, keys, saleId);
}
