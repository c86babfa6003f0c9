/**
 * A4: pessimistic locking: `SELECT … FOR UPDATE`, check, decrement, commit.
 *
 * Shows: never oversold, everything sold, one buyer after the other. It is A1 with the row locked from the look on,
 * and holds that lock for three round trips where A3 holds it for two.
 * From: the other usual answer to A1.
 */
import { type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { OrderDatabase } from '../parts/order-database.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const a4: SellingRow = {
  kind: 'selling',
  id: 'A4',
  title: 'database: SELECT … FOR UPDATE',
  stores: ['postgres'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, { steps } = PLAIN_SETTING) {
    const db = await OrderDatabase.open(stores, sale);
    return db.strategy((buyerId, orderId) =>
      db.transaction(async (tx) => {
        const { rows } = await tx.query('SELECT stock FROM catalogue_sales WHERE id = $1 FOR UPDATE', [
          sale.id,
        ]);
        await steps.at('read');
        if (rows[0].stock < 1) return SOLD_OUT;
        await tx.query('UPDATE catalogue_sales SET stock = stock - 1 WHERE id = $1', [sale.id]);
        await db.addOrder(tx, buyerId, orderId);
        return SOLD;
      }),
    );
  },
};
