/** The places and orders of a sale with a queue, as Postgres has them in the end. */
import pg from 'pg';
import { draw } from '../../../src/queue/draw/drawn-order.ts';
import { SALE } from '../world.ts';

export interface PlaceRow {
  readonly number: number;
  /** How many places come before it in the line, and itself. */
  readonly rank: number;
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
  /** When its buyer accepted it; missing if that has not been. */
  readonly acceptedAtMs: number | undefined;
  /** When it gave its units back. */
  readonly endedAtMs: number | undefined;
}

/** What an operator has done that the checker must know. */
export interface Movement {
  readonly atMs: number;
  readonly action: string;
  /** Added to the stock. */
  readonly units: number;
}

export interface QueueTruth {
  readonly places: readonly PlaceRow[];
  readonly orders: readonly OrderRow[];
  /** In their order in time. */
  readonly movements: readonly Movement[];
  /** Orders that Redis has lost, at least: by the sale's own count, or by their names, of which an emptied Redis leaves no count. */
  readonly reportedLost: number;
}

const MS = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`;
const KEY = 'place:';

export async function readQueueTruth(databaseUrl: string): Promise<QueueTruth> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const rankOf = await readRanks(client);
    const places = await client.query<Omit<PlaceRow, 'rank'>>(
      `SELECT number::float8, buyer_id AS "buyerId", state, reason, ${MS('given_at')} AS "givenAtMs",
         ${MS('ended_at')} AS "endedAtMs" FROM places WHERE sale_id = $1 ORDER BY number`,
      [SALE],
    );
    const movements = await client.query<Movement>(
      `SELECT ${MS('moved_at')} AS "atMs", action, units::float8 FROM stock_movements
       WHERE sale_id = $1 AND action <> 'create' ORDER BY id`,
      [SALE],
    );
    const lost = await client.query<{ orders: string }>(
      `SELECT greatest((SELECT coalesce(sum(orders), 0) FROM sale_losses WHERE sale_id = $1),
         (SELECT count(*) FROM lost_orders WHERE sale_id = $1)) AS orders`,
      [SALE],
    );
    return {
      places: places.rows.map((row) => ({
        ...row,
        rank: rankOf(row.number),
        endedAtMs: row.endedAtMs ?? undefined,
      })),
      orders: await readOrders(client),
      movements: movements.rows,
      reportedLost: Number(lost.rows[0]!.orders),
    };
  } finally {
    await client.end();
  }
}

async function readOrders(client: pg.Client): Promise<OrderRow[]> {
  const found = await client.query<OrderRow & { key: string }>(
    `SELECT o.order_id::text AS "orderId", coalesce(o.idempotency_key, '') AS key, o.buyer_id AS "buyerId", o.quantity,
       o.status IN ('unpaid', 'paid', 'redeemed') AS "isLive", o.status = 'rejected' AS "isRejected",
       ${MS('o.committed_at')} AS "committedAtMs", ${MS('p.ended_at')} AS "acceptedAtMs",
       ${MS('coalesce(o.cancelled_at, o.expired_at, o.refunded_at)')} AS "endedAtMs"
     FROM orders o LEFT JOIN places p ON p.sale_id = o.sale_id AND p.order_id = o.order_id AND p.state = 'bought'
     WHERE o.sale_id = $1`,
    [SALE],
  );
  return found.rows.map(({ key, ...row }) => ({
    ...row,
    number: key.startsWith(KEY) ? Number(key.slice(KEY.length)) : 0,
    acceptedAtMs: row.acceptedAtMs ?? undefined,
    endedAtMs: row.endedAtMs ?? undefined,
  }));
}

/** The rank of each number: that of the draw, calculated again from what was published, or the number itself. */
async function readRanks(client: pg.Client): Promise<(number: number) => number> {
  const found = await client.query<{ seed: Uint8Array; entries: number; hash: string }>(
    `SELECT seed, entries::float8, entries_hash AS hash FROM queues WHERE sale_id = $1 AND drawn_at IS NOT NULL`,
    [SALE],
  );
  const [drawn] = found.rows;
  if (!drawn) return (number) => number;
  const { seed, entries, hash: entriesHash } = drawn;
  const ranks = draw({ seed, entries, entriesHash }).ranksByNumber();
  return (number) => (number <= entries ? ranks.rankOf(number) : number);
}
