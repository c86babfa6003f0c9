/**
 * C3: the limit, the check, the decrement and the order in one script.
 *
 * Shows: safe, and nothing is left over, whichever process dies: Redis runs a script as a whole. All of the work is on one key, and
 * so on one core of one server, which bounds the rate.
 * From: the final version of most articles, and the seed of Stockade's take (src/engine/redis/lua/purchase/take.lua).
 */
import { LIMIT_REACHED, type Outcome, type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { encodeOrder, RedisShop } from '../parts/redis-shop.ts';
import { script } from '../parts/script.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

const TAKE = `
local counter, buyers, orders, buyer, order = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
if redis.call('SISMEMBER', buyers, buyer) == 1 then return 'limit_reached' end
if tonumber(redis.call('HGET', counter, 'left')) < 1 then return 'sold_out' end
redis.call('HINCRBY', counter, 'left', -1)
redis.call('SADD', buyers, buyer)
redis.call('RPUSH', orders, order)
return 'sold'
`;

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  sold: SOLD,
  sold_out: SOLD_OUT,
  limit_reached: LIMIT_REACHED,
};

export const c3: SellingRow = {
  kind: 'selling',
  id: 'C3',
  title: 'check and decrement in a script, one key',
  stores: ['redis'],
  stock: 'safe',
  limit: 'safe',
  undersells: '',
  async open(stores, sale, { checkBuyer } = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const [counter, buyers] = [shop.key('counter'), shop.key('buyers')];
    await shop.redis.hsetnx(counter, 'left', sale.stock);
    const take = script<string>(shop.redis, 3, TAKE);
    const strategy = shop.strategy(async (buyerId, orderId) => {
      await checkBuyer(buyerId);
      const code = await take(counter, buyers, shop.ordersKey, buyerId, encodeOrder(orderId, buyerId));
      return OUTCOMES[code]!;
    });
    return { ...strategy, left: async () => Number(await shop.redis.hget(counter, 'left')) };
  },
};
