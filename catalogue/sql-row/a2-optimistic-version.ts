/**
 * A2: optimistic locking, with the stock as its own version: decrement if the stock is still the one that was read.
 *
 * Shows: never oversold, but of no use to a crowd. Of all that have read the same number, one succeeds; the others fail although
 * there is enough for each of them.
 * From: compare-and-swap (a version column, here the stock itself), which courses propose against A1.
 */
import { failed, type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { OrderDatabase } from '../parts/order-database.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const a2: SellingRow = {
  kind: 'selling',
  id: 'A2',
  title: 'database: optimistic, by the stock that was read',
  stores: ['postgres'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: 'of all who read the same stock at once, only one buys',
  async open(stores, sale, { steps } = PLAIN_SETTING) {
    const db = await OrderDatabase.open(stores, sale);
    return db.strategy(async (buyerId, orderId) => {
      const read = await db.stock();
      await steps.at('read');
      if (read < 1) return SOLD_OUT;
      return db.transaction(async (tx) => {
        const { rowCount } = await tx.query(
          'UPDATE catalogue_sales SET stock = stock - 1 WHERE id = $1 AND stock = $2',
          [sale.id, read],
        );
        if (rowCount === 0) return failed('another has changed the stock since it was read');
        await db.addOrder(tx, buyerId, orderId);
        return SOLD;
      });
    });
  },
};
