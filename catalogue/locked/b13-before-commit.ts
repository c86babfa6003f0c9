/**
 * B13, the wrong way: A5 under a lock per buyer, acquired and released inside the transaction.
 *
 * Shows: the lock is released before the order is committed. So the buyer's next request gets the lock, counts no order, and
 * inserts a second one. The lock works perfectly; it ends too early.
 * From: `synchronized` or a Redis lock in a method that is itself `@Transactional`: the commit comes after its last line.
 */

import { LIMIT_REACHED, type Sell, type SellingRow } from '../parts/contract.ts';
import { OrderDatabase } from '../parts/order-database.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { countOrders, takeOne } from '../sql-row/a5-count-then-insert.ts';
import { owned } from './b6-compare-and-delete.ts';
import { spinning, under } from './lock.ts';

export const b13BeforeCommit: SellingRow = {
  kind: 'selling',
  id: 'B13-before',
  title: 'lock per buyer, released before the commit',
  stores: ['postgres', 'redis'],
  stock: 'safe',
  limit: 'unsafe',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const db = await OrderDatabase.open(stores, sale);
    const shop = await RedisShop.open(stores, sale);
    const sell: Sell = (buyerId, orderId) => {
      const acquire = spinning(setting, owned(shop.redis, shop.key(`lock:${buyerId}`)));
      return db.transaction(async (tx) => {
        const outcome = await under(acquire, orderId, async () => {
          if ((await countOrders(db, buyerId, tx)) > 0) return LIMIT_REACHED;
          return takeOne(db, tx, buyerId, orderId);
        });
        await setting.steps.at('uncommitted');
        return outcome;
      });
    };
    return db.strategy(sell, shop.redis);
  },
};
