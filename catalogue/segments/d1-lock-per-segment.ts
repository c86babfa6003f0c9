/**
 * D1: the stock in segments, and a lock for each: lock striping.
 *
 * Shows: safe, and as many buyers are served at once as there are segments, because each waits for its own segment only. A buyer
 * that finds its segment empty tries the next ones, so everything is sold. A buyer that comes when everything is sold acquires
 * every lock in turn to learn that.
 * From: the segments of Java's ConcurrentHashMap, applied to stock. The lock and the fence are B8's.
 */
import { homeSegment } from '../../src/engine/sale/home-segment.ts';
import { splitEvenly } from '../../src/engine/sale/split-evenly.ts';
import { WatchdogLocks } from '../locked/b7-watchdog.ts';
import { sellingFenced } from '../locked/b8-fencing-token.ts';
import { needed, type SellingRow, SOLD_OUT } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const d1: SellingRow = {
  kind: 'selling',
  id: 'D1',
  title: 'stock in segments, one lock per segment',
  stores: ['redis'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const { redis } = shop;
    const locks = await WatchdogLocks.open(needed(stores, 'redis'), setting);
    const keys = splitEvenly(sale.stock, sale.segments).map((_, i) => shop.key(`segment-${i}`));
    await Promise.all(
      splitEvenly(sale.stock, sale.segments).map((units, i) => redis.set(keys[i]!, units, 'NX')),
    );
    const segments = keys.map((key) => sellingFenced(shop, key, locks.acquire(`${key}:lock`), setting));
    const strategy = shop.strategy(async (buyerId, orderId) => {
      const home = homeSegment(buyerId, segments.length);
      for (let i = 0; i < segments.length; i++) {
        const outcome = await segments[(home + i) % segments.length]!(buyerId, orderId);
        if (outcome.code !== 'sold_out') return outcome;
      }
      return SOLD_OUT;
    }, locks);
    const left = async () => (await redis.mget(keys)).reduce((sum, units) => sum + Number(units), 0);
    return { ...strategy, left };
  },
};
