/**
 * B4: SET NX PX: a lock that expires, released by DEL.
 *
 * Shows: a dead holder no longer blocks (B3), but a slow one does harm. Its lock expires and another holder gets it. When the slow
 * one is done, its DEL deletes the other's lock, and a third holder enters.
 * From: the second distributed lock of every course.
 */
import type { SellingRow } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { type Acquire, LOCK_TTL_MS, sellingUnder, spinning } from './lock.ts';

export const b4: SellingRow = {
  kind: 'selling',
  id: 'B4',
  title: 'SET NX PX, released by plain DEL',
  stores: ['redis'],
  stock: 'while-held',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const acquire = spinning(setting, expiring(shop));
    return shop.strategy(sellingUnder(acquire, shop, setting));
  },
};

function expiring(shop: RedisShop): Acquire {
  const lock = shop.key('lock');
  return async (holder) => {
    if ((await shop.redis.set(lock, holder, 'PX', LOCK_TTL_MS, 'NX')) === null) return undefined;
    return {
      release: async () => {
        await shop.redis.del(lock);
      },
    };
  };
}
