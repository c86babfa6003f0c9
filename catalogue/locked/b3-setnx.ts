/**
 * B3: a lock that all nodes share: SETNX, work, DEL.
 *
 * Shows: a holder that dies never sends its DEL, and the key has no expiry: no node sells anything any more.
 * From: the first distributed lock of every course. SETNX and EXPIRE as two commands fail likewise, if the holder dies between
 * them.
 */
import type { SellingRow } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { type Acquire, sellingUnder, spinning } from './lock.ts';

export const b3: SellingRow = {
  kind: 'selling',
  id: 'B3',
  title: 'SETNX without expiry',
  stores: ['redis'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: 'for ever, once a holder has died',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const acquire = spinning(setting, setnx(shop));
    return shop.strategy(sellingUnder(acquire, shop, setting));
  },
};

function setnx(shop: RedisShop): Acquire {
  const lock = shop.key('lock');
  return async (holder) => {
    if ((await shop.redis.setnx(lock, holder)) === 0) return undefined;
    return {
      release: async () => {
        await shop.redis.del(lock);
      },
    };
  };
}
