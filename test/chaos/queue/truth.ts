/** The places and orders of a sale with a queue, as Postgres has them in the end. */
import pg from 'pg';
import { SALE } from '../world.ts';

export interface PlaceRow {
  readonly number: number;
  readonly buyerId: string;
  readonly state: 'waiting' | 'offered' | 'bought' | 'lapsed' | 'left';
  readonly reason: string | undefined;
  readonly givenAtMs: number;
  readonly endedAtMs: number | undefined;
}

export interface OrderRow {
  readonly orderId: string;
  /** The place that its key names. */
  readonly number: number;
  readonly buyerId: string;
  readonly quantity: number;
  readonly isLive: boolean;
  /** Postgres refused it, so it never held units. */
  readonly isRejected: boolean;
  readonly committedAtMs: number;
  /** When it gave its units back. */
  readonly endedAtMs: number | undefined;
}

export interface QueueTruth {
  readonly places: readonly PlaceRow[];
  readonly orders: readonly OrderRow[];
  /** A lower bound of the orders that Redis has lost, by the sale's own count. */
  readonly countedLost: number;
}

const MS = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`;
const KEY = 'place:';

export async function readQueueTruth(databaseUrl: string): Promise<QueueTruth> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const places = await client.query<PlaceRow>(
      `SELECT number::float8, buyer_id AS "buyerId", state, reason, ${MS('given_at')} AS "givenAtMs",
         ${MS('ended_at')} AS "endedAtMs" FROM places WHERE sale_id = $1 ORDER BY number`,
      [SALE],
    );
    const orders = await client.query<OrderRow & { key: string | null }>(
      `SELECT order_id::text AS "orderId", coalesce(idempotency_key, '') AS key, buyer_id AS "buyerId", quantity,
         status IN ('unpaid', 'paid', 'redeemed') AS "isLive", status = 'rejected' AS "isRejected",
         ${MS('committed_at')} AS "committedAtMs", ${MS('coalesce(cancelled_at, expired_at, refunded_at)')} AS "endedAtMs"
       FROM orders WHERE sale_id = $1`,
      [SALE],
    );
    const lost = await client.query<{ orders: string }>(
      'SELECT coalesce(sum(orders), 0) AS orders FROM sale_losses WHERE sale_id = $1',
      [SALE],
    );
    return {
      places: places.rows.map((row) => ({ ...row, endedAtMs: row.endedAtMs ?? undefined })),
      orders: orders.rows.map(({ key, ...row }) => ({
        ...row,
        number: key?.startsWith(KEY) ? Number(key.slice(KEY.length)) : 0,
        endedAtMs: row.endedAtMs ?? undefined,
      })),
      countedLost: Number(lost.rows[0]!.orders),
    };
  } finally {
    await client.end();
  }
}
