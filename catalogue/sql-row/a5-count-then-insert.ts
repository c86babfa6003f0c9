/**
 * A5: one order per buyer: count the buyer's orders, and insert one if there is none.
 *
 * Shows: the fault of A1 in another table. Two requests of one buyer both count none, and both insert. The guard on the stock (A3)
 * doesn't help: the stock is right, the limit is not.
 * From: the "one person, one order" step of voucher shops.
 */
import { LIMIT_REACHED, type Outcome, type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { OrderDatabase, type Session } from '../parts/order-database.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

export const a5: SellingRow = {
  kind: 'selling',
  id: 'A5',
  title: 'one order per buyer: count, then insert',
  stores: ['postgres'],
  stock: 'safe',
  limit: 'unsafe',
  undersells: '',
  async open(stores, sale, { steps } = PLAIN_SETTING) {
    const db = await OrderDatabase.open(stores, sale);
    return db.strategy(async (buyerId, orderId) => {
      const held = await countOrders(db, buyerId);
      await steps.at('counted');
      if (held > 0) return LIMIT_REACHED;
      return db.transaction((tx) => takeOne(db, tx, buyerId, orderId));
    });
  },
};

/** How many orders the buyer has, as far as this session can see. */
export async function countOrders(
  db: OrderDatabase,
  buyerId: string,
  session: Session = db.pool,
): Promise<number> {
  const { rows } = await session.query(
    'SELECT count(*)::int AS held FROM catalogue_orders WHERE sale_id = $1 AND buyer_id = $2',
    [db.saleId, buyerId],
  );
  return rows[0].held;
}

/** The guarded decrement of A3, and the order. */
export async function takeOne(
  db: OrderDatabase,
  tx: Session,
  buyerId: string,
  orderId: string,
): Promise<Outcome> {
  const { rowCount } = await tx.query(
    'UPDATE catalogue_sales SET stock = stock - 1 WHERE id = $1 AND stock > 0',
    [db.saleId],
  );
  if (rowCount === 0) return SOLD_OUT;
  await db.addOrder(tx, buyerId, orderId);
  return SOLD;
}
