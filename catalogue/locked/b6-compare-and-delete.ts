/**
 * B6: B5 with comparison and deletion in one script.
 *
 * Shows: never deletes another's lock. But a holder that works longer than the expiry has lost the lock without knowing it, and
 * writes at the same time as the next holder.
 * From: the Redis documentation's "correct implementation with a single instance".
 */
import type { Redis } from 'ioredis';
import type { SellingRow } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { type Acquire, LOCK_TTL_MS, sellingUnder, spinning } from './lock.ts';

export const b6: SellingRow = {
  kind: 'selling',
  id: 'B6',
  title: 'SET NX PX and an owner token, released by a script',
  stores: ['redis'],
  stock: 'while-held',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const acquire = spinning(setting, owned(shop.redis, shop.key('lock')));
    return shop.strategy(sellingUnder(acquire, shop, setting));
  },
};

const DELETE_IF_MINE = `
local lock, owner = KEYS[1], ARGV[1]
if redis.call('GET', lock) == owner then return redis.call('DEL', lock) end
return 0
`;

export function owned(redis: Redis, lock: string): Acquire {
  return async (holder) => {
    if ((await redis.set(lock, holder, 'PX', LOCK_TTL_MS, 'NX')) === null) return undefined;
    return { release: () => deleteIfMine(redis, lock, holder) };
  };
}

export async function deleteIfMine(redis: Redis, lock: string, holder: string): Promise<void> {
  await redis.eval(DELETE_IF_MINE, 1, lock, holder);
}
