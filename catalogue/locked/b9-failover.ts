/**
 * B9: B7 on a primary with a replica that takes over when the primary fails.
 *
 * Shows: replication is asynchronous. If the primary dies after it has granted the lock and before it has told its replica, the
 * lock is gone: the promoted replica grants it again, and there are two holders. The watchdog of the first one does not help.
 * From: the Redis documentation, "Why failover-based implementations are not enough"; it leads to B10.
 */

import { needed, type SellingRow } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { b7, WatchdogLocks } from './b7-watchdog.ts';
import { sellingUnder } from './lock.ts';

export const b9: SellingRow = {
  ...b7,
  id: 'B9',
  title: 'B7 on a primary that fails over',
  stores: ['redis', 'lockRedis'],
  /**
   * The first of `lockRedis` is the primary, as a sentinel would name it now. The stock is on another server, and
   * stays.
   */
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const locks = await WatchdogLocks.open(needed(stores, 'lockRedis')[0]!, setting);
    return shop.strategy(sellingUnder(locks.acquire(shop.key('lock')), shop, setting), locks);
  },
};
