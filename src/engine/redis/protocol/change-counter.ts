import type { RedisClient } from '../../../redis/clients.ts';
import type { Keys } from './keys.ts';

/**
 * Notifies every node after a change of a sale. Messages can be lost but the counter can't: a node that reads the
 * same count again has missed nothing.
 */
export async function tellChange(redis: RedisClient, keys: Keys, saleId: string): Promise<void> {
  await Promise.all([redis.incr(keys.changes), redis.publish(keys.sales, saleId)]);
}

/** Raises the epoch because units came back, and notifies every node. */
export async function reopenSale(redis: RedisClient, keys: Keys, saleId: string): Promise<void> {
  await redis.hincrby(keys.sale(saleId), 'epoch', 1);
  await tellChange(redis, keys, saleId);
}
