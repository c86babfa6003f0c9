import { type Database, rows } from './database.ts';

export interface OrderRecord {
  readonly orderId: string;
  readonly saleId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly status: string;
  readonly committedAt: Date;
}

const MAX_ORDER_ID = 2n ** 63n - 1n;

/** False for what can't be an order id: Postgres need not be asked. */
export function isOrderId(text: string): boolean {
  return /^\d{1,19}$/.test(text) && BigInt(text) <= MAX_ORDER_ID;
}

/** The order as it is in Postgres; an order that is only in its log is not there yet. */
export async function readOrder(db: Database, orderId: string): Promise<OrderRecord | undefined> {
  const [row] = await rows<{
    sale_id: string;
    buyer_id: string;
    quantity: number;
    status: string;
    committed_at: Date;
  }>(db, 'SELECT sale_id, buyer_id, quantity, status, committed_at FROM orders WHERE order_id = ?', [
    orderId,
  ]);
  if (!row) return undefined;
  return {
    orderId,
    saleId: row.sale_id,
    buyerId: row.buyer_id,
    quantity: row.quantity,
    status: row.status,
    committedAt: row.committed_at,
  };
}

const RECENT_SALES = 1_000;

/** Sales whose logs may still hold orders that Postgres does not have, the newest first. */
export async function readRecentSaleIds(db: Database): Promise<string[]> {
  const found = await rows<{ id: string }>(
    db,
    `SELECT id FROM sales WHERE generation > 0 ORDER BY state = 'closed', created_at DESC LIMIT ?`,
    [RECENT_SALES],
  );
  return found.map((row) => row.id);
}
