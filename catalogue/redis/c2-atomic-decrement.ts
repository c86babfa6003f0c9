/**
 * C2: no lock: HINCRBY -1; a buyer that gets a number below zero is refused.
 *
 * Shows: safe, however slow a node is, because the check uses the result of the decrement itself. But the counter goes below zero
 * and must come back: every refusal and every failed sale returns its unit. Otherwise the counter would stay at -100 after a
 * crowd, and a unit that comes back would be lost.
 * A node that dies between decrement and order loses the unit. So does a lost reply, after which there may be an order. One script
 * for both (C3) closes that gap.
 * From: what the account of C1 put in its place.
 */
import { failed, type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const c2: SellingRow = {
  kind: 'selling',
  id: 'C2',
  title: 'atomic decrement: HINCRBY -1, refused below 0',
  stores: ['redis'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: 'by what a node had taken, and not yet recorded, when it died',
  async open(stores, sale, { steps, checkBuyer } = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const counter = shop.key('counter');
    await shop.redis.hsetnx(counter, 'left', sale.stock);
    const add = (units: number) => shop.redis.hincrby(counter, 'left', units);
    const strategy = shop.strategy(async (buyerId, orderId) => {
      await checkBuyer(buyerId);
      const left = await add(-1);
      await steps.at('taken');
      if (left >= 0 && (await shop.record(orderId, buyerId))) return SOLD;
      await add(1);
      return left < 0 ? SOLD_OUT : failed('the order was refused by its store, and the unit given back');
    });
    return { ...strategy, left: async () => Number(await shop.redis.hget(counter, 'left')) };
  },
};
