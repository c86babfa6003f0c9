/**
 * C1: a reported incident: 100 bottles, a lock of ten seconds, a call to the user service inside it, and the stock read and written
 * in two steps.
 *
 * Shows: the user service hangs for more than ten seconds. The lock expires, the next buyer gets it, and hangs as well. When the
 * service is back, both have read the same stock, both sell, and the first deletes the lock of the second. There are two buyers
 * for each unit: 100 units become 200 orders, and the counter ends at exactly 0.
 * From: the widely read account of a Chinese shop that oversold a limited liquor in this way. It combines B4 and B1.
 */
import { failed, type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { encodeOrder, RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

const LOCK_SECONDS = 10;

export const c1: SellingRow = {
  kind: 'selling',
  id: 'C1',
  title: 'the incident: a lock that expires during the user check',
  stores: ['redis'],
  stock: 'unsafe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, { steps, checkBuyer } = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const { redis, stockKey, ordersKey } = shop;
    const lock = shop.key('lock');
    return shop.strategy(async (buyerId, orderId) => {
      const locked = await redis.set(lock, 'locked', 'EX', LOCK_SECONDS, 'NX');
      if (locked === null) return failed('too many people: please try again');
      try {
        await checkBuyer(buyerId);
        const left = Number(await redis.get(stockKey));
        await steps.at('read');
        if (left < 1) return SOLD_OUT;
        await redis.set(stockKey, left - 1);
        await redis.rpush(ordersKey, encodeOrder(orderId, buyerId));
        return SOLD;
      } finally {
        await redis.del(lock);
      }
    });
  },
};
