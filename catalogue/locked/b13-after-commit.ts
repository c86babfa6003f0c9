/**
 * B13, the right way: the same lock per buyer, with the whole transaction inside it.
 *
 * Shows: holds, on any number of nodes: the next holder of the lock sees the order. It is as good as the lock, which is B6's here.
 * A unique index on sale and buyer would hold without any lock.
 * From: the correction of B13-before: the lock in the caller, outside of the `@Transactional` method.
 */

import { LIMIT_REACHED, type Sell, type SellingRow } from '../parts/contract.ts';
import { OrderDatabase } from '../parts/order-database.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { countOrders, takeOne } from '../sql-row/a5-count-then-insert.ts';
import { owned } from './b6-compare-and-delete.ts';
import { b13BeforeCommit } from './b13-before-commit.ts';
import { spinning, under } from './lock.ts';

export const b13AfterCommit: SellingRow = {
  ...b13BeforeCommit,
  id: 'B13-after',
  title: 'lock per buyer, released after the commit',
  limit: 'while-held',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const db = await OrderDatabase.open(stores, sale);
    const shop = await RedisShop.open(stores, sale);
    const sell: Sell = (buyerId, orderId) => {
      const acquire = spinning(setting, owned(shop.redis, shop.key(`lock:${buyerId}`)));
      return under(acquire, orderId, () =>
        db.transaction(async (tx) => {
          if ((await countOrders(db, buyerId, tx)) > 0) return LIMIT_REACHED;
          const outcome = await takeOne(db, tx, buyerId, orderId);
          await setting.steps.at('uncommitted');
          return outcome;
        }),
      );
    };
    return db.strategy(sell, shop.redis);
  },
};
