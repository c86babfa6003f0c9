/**
 * A6: A5 with a mutex per buyer around it, in the process: `synchronized (buyerId.intern())`.
 *
 * Shows: holds as long as one process sells. A second node has its own mutex, and a buyer that sends requests to both at once gets
 * two orders.
 * From: the next step of voucher shops, and the reason why they then turn to locks in Redis.
 */

import type { SellingRow } from '../parts/contract.ts';
import { Mutex } from '../parts/mutex.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { a5 } from './a5-count-then-insert.ts';

export const a6: SellingRow = {
  ...a5,
  id: 'A6',
  title: 'A5 in a mutex per buyer, in the process',
  limit: 'one-node',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const counting = await a5.open(stores, sale, setting);
    const mutex = new Mutex(setting.steps);
    return {
      ...counting,
      sell: (buyerId, orderId) => mutex.run(buyerId, () => counting.sell(buyerId, orderId)),
    };
  },
};
