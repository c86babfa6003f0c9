/**
 * B12: the database's own lock by name, an advisory lock, around A1.
 *
 * Shows: held for as long as its session lives, however long that is, and freed when the session ends: there is no expiry to
 * outlive. The work runs in the same session, so a holder that has lost the lock can't write any more either. Each waiting buyer
 * keeps a connection busy, and all of them wait for one name.
 * From: `pg_advisory_lock` in Postgres, `GET_LOCK` in MySQL.
 */
import { type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { OrderDatabase } from '../parts/order-database.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const b12: SellingRow = {
  kind: 'selling',
  id: 'B12',
  title: 'database: advisory lock',
  stores: ['postgres'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, { steps, checkBuyer } = PLAIN_SETTING) {
    const db = await OrderDatabase.open(stores, sale);
    return db.strategy((buyerId, orderId) =>
      db.session(async (session) => {
        await session.query('SELECT pg_advisory_lock(hashtext($1))', [sale.id]);
        await checkBuyer(buyerId);
        const left = await db.stock(session);
        await steps.at('read');
        if (left > 0) {
          await session.query('BEGIN');
          await session.query('UPDATE catalogue_sales SET stock = stock - 1 WHERE id = $1', [sale.id]);
          await db.addOrder(session, buyerId, orderId);
          await session.query('COMMIT');
        }
        await session.query('SELECT pg_advisory_unlock(hashtext($1))', [sale.id]);
        return left > 0 ? SOLD : SOLD_OUT;
      }),
    );
  },
};
