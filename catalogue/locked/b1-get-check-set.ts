/**
 * B1: GET the stock, check it, SET what is left.
 *
 * Shows: A1 in another store. Redis runs one command at a time, but not two commands as one: all buyers that have read the same
 * number sell the same unit. Unlike in A1 the counter looks right, because all of them write the same number.
 * From: the first stock counter in Redis, in any tutorial. B2 to B11 put their locks around it.
 */
import { type Outcome, type SellingRow, type Setting, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { encodeOrder, RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const b1: SellingRow = {
  kind: 'selling',
  id: 'B1',
  title: 'Redis: GET, check, SET',
  stores: ['redis'],
  stock: 'unsafe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    return shop.strategy((buyerId, orderId) => getCheckSet(shop, setting, buyerId, orderId));
  },
};

export async function getCheckSet(
  { redis, stockKey, ordersKey }: RedisShop,
  { steps }: Setting,
  buyerId: string,
  orderId: string,
): Promise<Outcome> {
  const left = Number(await redis.get(stockKey));
  await steps.at('read');
  if (left < 1) return SOLD_OUT;
  await redis
    .multi()
    .set(stockKey, left - 1)
    .rpush(ordersKey, encodeOrder(orderId, buyerId))
    .exec();
  return SOLD;
}
