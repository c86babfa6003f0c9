/**
 * B8: B7, and each holder gets a number that is larger than all before it, the fencing token. The stock refuses a token if it has
 * seen a larger one.
 *
 * Shows: no lock with an expiry can stop a holder that was frozen beyond it (a paused process, a partitioned machine) from writing
 * when it resumes. The stock can: it refuses that write, and nothing is sold twice.
 * The read carries the token too. Otherwise the frozen holder could resume between the read and the write of the next holder, and
 * write unseen; the next holder would then overwrite that with a value based on its earlier read.
 * From: M. Kleppmann, "How to do distributed locking" (2016); Chubby's sequencers.
 */

import {
  failed,
  needed,
  type Sell,
  type SellingRow,
  type Setting,
  SOLD,
  SOLD_OUT,
} from '../parts/contract.ts';
import { encodeOrder, RedisShop } from '../parts/redis-shop.ts';
import { script } from '../parts/script.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { WatchdogLocks } from './b7-watchdog.ts';
import { type Acquire, under } from './lock.ts';

export const b8: SellingRow = {
  kind: 'selling',
  id: 'B8',
  title: 'B7 with a fencing token',
  stores: ['redis'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const locks = await WatchdogLocks.open(needed(stores, 'redis'), setting);
    const sell = sellingFenced(shop, shop.stockKey, locks.acquire(shop.key('lock')), setting);
    return shop.strategy(sell, locks);
  },
};

const READ = `
local stock, fence, token = KEYS[1], KEYS[2], tonumber(ARGV[1])
if token < tonumber(redis.call('GET', fence) or 0) then return false end
redis.call('SET', fence, token)
return redis.call('GET', stock)
`;

const WRITE = `
local stock, fence, orders, token, left, order = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1]), ARGV[2], ARGV[3]
if token < tonumber(redis.call('GET', fence)) then return 0 end
redis.call('SET', stock, left)
redis.call('RPUSH', orders, order)
return 1
`;

const LATE = failed('the lock was lost: a later holder has come to the stock');

/** Sells from a stock that refuses late holders. */
export function sellingFenced(shop: RedisShop, stockKey: string, acquire: Acquire, setting: Setting): Sell {
  const [tokens, fence] = [`${stockKey}:tokens`, `${stockKey}:fence`];
  const read = script<string | null>(shop.redis, 2, READ);
  const write = script<number>(shop.redis, 3, WRITE);
  return (buyerId, orderId) =>
    under(acquire, orderId, async () => {
      const token = await shop.redis.incr(tokens);
      await setting.checkBuyer(buyerId);
      const left = await read(stockKey, fence, token);
      await setting.steps.at('read');
      if (left === null) return LATE;
      if (Number(left) < 1) return SOLD_OUT;
      const order = encodeOrder(orderId, buyerId);
      const written = await write(stockKey, fence, shop.ordersKey, token, Number(left) - 1, order);
      await setting.steps.at('written');
      return written === 1 ? SOLD : LATE;
    });
}
