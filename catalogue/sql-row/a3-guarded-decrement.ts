/**
 * A3: the check is part of the decrement: `WHERE stock > 0`.
 *
 * Shows: never oversold, and everything is sold. The database locks the row from the update to the commit, so the next buyer waits
 * and then sees the current stock. All buyers wait for one row, which bounds the rate.
 * From: the usual answer to A2. Stockade's own stock in Postgres is guarded in the same way (src/sync).
 */
import { type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { OrderDatabase } from '../parts/order-database.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const a3: SellingRow = {
  kind: 'selling',
  id: 'A3',
  title: 'database: guarded decrement',
  stores: ['postgres'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, { steps } = PLAIN_SETTING) {
    const db = await OrderDatabase.open(stores, sale);
    return db.strategy((buyerId, orderId) =>
      db.transaction(async (tx) => {
        const { rowCount } = await tx.query(
          'UPDATE catalogue_sales SET stock = stock - 1 WHERE id = $1 AND stock > 0',
          [sale.id],
        );
        await steps.at('taken');
        if (rowCount === 0) return SOLD_OUT;
        await db.addOrder(tx, buyerId, orderId);
        return SOLD;
      }),
    );
  },
};
