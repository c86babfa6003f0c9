/**
 * A1: check whether something is left; if so, decrement.
 *
 * Shows: between the check and the decrement, other buyers check too. All that have seen the last unit sell it, and the stock goes
 * below zero.
 * From: the first version of every shop's order service, and of every course on flash sales.
 */
import { type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { OrderDatabase } from '../parts/order-database.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const a1: SellingRow = {
  kind: 'selling',
  id: 'A1',
  title: 'database: check, then decrement',
  stores: ['postgres'],
  stock: 'unsafe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, { steps } = PLAIN_SETTING) {
    const db = await OrderDatabase.open(stores, sale);
    return db.strategy(async (buyerId, orderId) => {
      const left = await db.stock();
      await steps.at('read');
      if (left < 1) return SOLD_OUT;
      await db.transaction(async (tx) => {
        await tx.query('UPDATE catalogue_sales SET stock = stock - 1 WHERE id = $1', [sale.id]);
        await db.addOrder(tx, buyerId, orderId);
      });
      return SOLD;
    });
  },
};
