/** The outbox of order events (table order_events), as the relay reads and empties it. */
import type { EventPart } from '../engine/contract.ts';
import { REHEARSAL_PREFIX } from '../engine/sale/rehearsal.ts';
import { numbers } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import { kindIn } from './event-kind.ts';

/** Rows in one page. A row has events of one kind, for up to a whole batch of orders, and is read as a whole. */
const PAGE_ROWS = 100;
/** A page ends with the row that goes beyond this. Eight bytes are one order. */
const PAGE_BYTES = 16_384;
/** Events in one part, and so in one call to the backend, which does nothing else meanwhile. */
export const PART_EVENTS = 256;
/** Events in one page of the webhook, and so in one request at most. */
export const WEBHOOK_PAGE_EVENTS = 100;

/** SQL: whether the shop may hear of the order `o`: nobody hears of the sales of a rehearsal. */
export const IS_REAL = `NOT starts_with(o.sale_id, '${REHEARSAL_PREFIX}')`;

/** SQL: the format of `to_char` for ISO 8601, as JavaScript writes it. */
export const ISO_TIME = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

export interface OutboxPage {
  /** Ids of the rows, the oldest first. */
  readonly rows: readonly string[];
  /** Their events in order; none if only rows were read. */
  readonly parts: readonly EventPart[];
}

export interface Waiting {
  readonly rows: number;
  /** How long the oldest has waited, in milliseconds; 0 if there is none. */
  readonly oldestMs: number;
}

export class Outbox {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Much cheaper than a read, which finds nothing nearly each time in an idle shop. */
  async isEmpty(): Promise<boolean> {
    // In order, so that Postgres takes the index: after a crowd, the table has many removed rows that a scan would meet.
    return (await rows(this.#db, 'SELECT 1 FROM order_events ORDER BY id LIMIT 1')).length === 0;
  }

  /**
   * The oldest rows with their events. Every read starts from the oldest row, because ids do not become visible in
   * order.
   */
  async read(): Promise<OutboxPage> {
    const found = await rows<EventPart>(
      this.#db,
      `SELECT e.id::text AS row, ${kindIn('e.kind')} AS kind, count(o.order_id)::integer AS events,
         to_char(e.happened_at AT TIME ZONE 'UTC', ${ISO_TIME}) AS at,
         coalesce(string_agg(u.place || ' ' || o.order_id || ' ' || o.sale_id || ' ' || o.buyer_id || ' ' || o.quantity
           || CASE WHEN o.reference IS NULL AND o.metadata IS NULL THEN ''
             ELSE E'\\t' || coalesce(o.reference, '') || E'\\t' || coalesce(o.metadata::text, '') END,
           E'\\n' ORDER BY u.place), '') AS lines
       FROM (${oldest('id, kind, happened_at, order_ids')}) e
       LEFT JOIN LATERAL unnest(e.order_ids) WITH ORDINALITY AS u (order_id, place) ON true
       LEFT JOIN orders o ON o.order_id = u.order_id AND ${IS_REAL}
       GROUP BY e.id, e.kind, e.happened_at, (u.place - 1) / ${PART_EVENTS}
       ORDER BY e.id, (u.place - 1) / ${PART_EVENTS}`,
    );
    return { rows: [...new Set(found.map(({ row }) => row))], parts: found };
  }

  /** As `read`, without the events: cheaper if nobody wants them. */
  async readRows(): Promise<OutboxPage> {
    const found = await rows<{ id: string }>(
      this.#db,
      `SELECT id::text FROM (${oldest('id')}) e ORDER BY e.id`,
    );
    return { rows: found.map(({ id }) => id), parts: [] };
  }

  /**
   * Removes delivered rows. @param forWebhook moves them to the webhook's pages, in the same transaction, unless all their
   * orders are a rehearsal's: such pages would stay as long as the webhook does not answer
   * @returns how many of them still existed
   */
  async remove(ids: readonly string[], { forWebhook }: { readonly forWebhook: boolean }): Promise<number> {
    const queued = `, queued AS (
      INSERT INTO webhook_pages (outbox_id, before, kind, order_ids, happened_at)
      SELECT r.id, before, r.kind, r.order_ids[before + 1 : before + ${WEBHOOK_PAGE_EVENTS}], r.happened_at
      FROM removed r
      CROSS JOIN LATERAL generate_series(0, cardinality(r.order_ids) - 1, ${WEBHOOK_PAGE_EVENTS}) AS before
      WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_id = r.order_ids[1] AND NOT (${IS_REAL}))
        OR EXISTS (SELECT 1 FROM orders o WHERE o.order_id = ANY (r.order_ids) AND ${IS_REAL})
      ORDER BY r.id, before)`;
    const [removed] = await rows<{ rows: number }>(
      this.#db,
      `WITH removed AS (DELETE FROM order_events WHERE id = ANY (?::bigint[]) RETURNING *)
       ${forWebhook ? queued : ''}
       SELECT count(*)::integer AS rows FROM removed`,
      [numbers(ids)],
    );
    return removed!.rows;
  }

  async waiting(): Promise<Waiting> {
    const [found] = await rows<{ rows: number; ms: number }>(
      this.#db,
      `SELECT count(*)::integer AS rows, ${AGE_MS} AS ms FROM order_events`,
    );
    return { rows: found!.rows, oldestMs: found!.ms };
  }
}

/** SQL: the age of the oldest `happened_at` in milliseconds, by the database's clock; 0 if there is no row. */
export const AGE_MS =
  'greatest(0, coalesce(extract(epoch FROM clock_timestamp() - min(happened_at)), 0) * 1000)::float8';

/** SQL: the oldest rows, up to PAGE_ROWS and PAGE_BYTES. `pg_column_size` does not read an array to tell its size. */
function oldest(columns: string): string {
  return `SELECT ${columns} FROM (
    SELECT *, sum(pg_column_size(order_ids)) OVER (ORDER BY id) - pg_column_size(order_ids) AS bytes_before
    FROM (SELECT * FROM order_events ORDER BY id LIMIT ${PAGE_ROWS}) f) s
    WHERE bytes_before < ${PAGE_BYTES}`;
}
