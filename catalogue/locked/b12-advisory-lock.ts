/**
 * B12: the database's own lock by name, an advisory lock, around A1.
 *
 * Shows: held for as long as its session lives, however long that is, and freed when it dies: there is no expiry to
 * outlive. The work is done in the same session, so that who has lost the lock has lost the means to write as well.
 * Each waiting buyer keeps a connection busy, and all of them wait for one name.
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
