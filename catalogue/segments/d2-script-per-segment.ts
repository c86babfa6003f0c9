/**
 * D2: the stock in segments, and C3's script on each.
 *
 * Shows: safe without any lock. Each segment has its own hash tag, so a cluster spreads them over its servers, and there is no hot
 * key. But buyers go from one empty segment to the next, with one call each. And a limit per buyer can't be kept, because a
 * buyer's orders may be in any segment.
 * From: D1 and C3 put together. What it leaves open is what Stockade (D3) adds.
 */
import { homeSegment } from '../../src/engine/sale/home-segment.ts';
import { splitEvenly } from '../../src/engine/sale/split-evenly.ts';
import { type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { decodeOrder, encodeOrder, RedisShop } from '../parts/redis-shop.ts';
import { script } from '../parts/script.ts';

const TAKE = `
local left, orders, order = KEYS[1], KEYS[2], ARGV[1]
if tonumber(redis.call('GET', left)) < 1 then return 0 end
redis.call('DECR', left)
redis.call('RPUSH', orders, order)
return 1
`;

export const d2: SellingRow = {
  kind: 'selling',
  id: 'D2',
  title: 'stock in segments, a script per take',
  stores: ['redis'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale) {
    const shop = await RedisShop.open(stores, sale);
    const { redis } = shop;
    const segments = splitEvenly(sale.stock, sale.segments).map((units, i) => {
      const tag = `${stores.keyPrefix}{${sale.id}:${i}}`;
      return { units, left: `${tag}:left`, orders: `${tag}:orders` };
    });
    await Promise.all(segments.map(({ left, units }) => redis.set(left, units, 'NX')));
    const take = script<number>(redis, 2, TAKE);
    const strategy = shop.strategy(async (buyerId, orderId) => {
      const home = homeSegment(buyerId, segments.length);
      for (let i = 0; i < segments.length; i++) {
        const { left, orders } = segments[(home + i) % segments.length]!;
        if ((await take(left, orders, encodeOrder(orderId, buyerId))) === 1) return SOLD;
      }
      return SOLD_OUT;
    });
    return {
      ...strategy,
      sold: async () => {
        const lists = await Promise.all(segments.map(({ orders }) => redis.lrange(orders, 0, -1)));
        return lists.flat().map(decodeOrder);
      },
      left: async () => {
        const counts = await Promise.all(segments.map(({ left }) => redis.get(left)));
        return counts.reduce((sum, units) => sum + Number(units), 0);
      },
    };
  },
};
