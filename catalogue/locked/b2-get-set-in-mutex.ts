/**
 * B2: B1 in a mutex of the process: `synchronized`.
 *
 * Shows: right as long as one process sells. With a second node behind the load balancer there are two mutexes, and
 * the last unit is sold twice.
 * From: the step that every course takes on its way from B1 to a lock that all nodes share.
 */

import type { SellingRow } from '../parts/contract.ts';
import { Mutex } from '../parts/mutex.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { b1 } from './b1-get-check-set.ts';

export const b2: SellingRow = {
  ...b1,
  id: 'B2',
  title: 'B1 in a mutex of the process',
  stock: 'one-node',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const unguarded = await b1.open(stores, sale, setting);
    const mutex = new Mutex(setting.steps);
    return {
      ...unguarded,
      sell: (buyerId, orderId) => mutex.run(sale.id, () => unguarded.sell(buyerId, orderId)),
    };
  },
};
