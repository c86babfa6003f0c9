/**
 * B5: the lock holds a token of its owner. The owner deletes the lock only after a GET has shown its own token.
 *
 * Shows: the same harm as B4, in a smaller gap. Between the GET and the DEL the lock may expire and be acquired by another: a
 * pause of the garbage collector is enough.
 * From: the third distributed lock of every course, and many that run in production.
 */
import type { SellingRow, Setting } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { type Acquire, LOCK_TTL_MS, sellingUnder, spinning } from './lock.ts';

export const b5: SellingRow = {
  kind: 'selling',
  id: 'B5',
  title: 'SET NX PX and an owner token, released by GET, then DEL',
  stores: ['redis'],
  stock: 'while-held',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const acquire = spinning(setting, owned(shop, setting));
    return shop.strategy(sellingUnder(acquire, shop, setting));
  },
};

function owned(shop: RedisShop, { steps }: Setting): Acquire {
  const lock = shop.key('lock');
  return async (holder) => {
    if ((await shop.redis.set(lock, holder, 'PX', LOCK_TTL_MS, 'NX')) === null) return undefined;
    return {
      release: async () => {
        const owner = await shop.redis.get(lock);
        await steps.at('compared');
        if (owner === holder) await shop.redis.del(lock);
      },
    };
  };
}
