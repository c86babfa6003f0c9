/** The webhook's queue: pages that wait, and dead letters (migrations/006-webhook-pages.sql). */

import { type PageQuery, pageOf } from '../operations/checked-input.ts';
import type { DeadLetter, DeadLetters } from '../operations/event-operations.ts';
import { numbers } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import { kindIn } from './event-kind.ts';
import type { OrderEvent } from './order-event.ts';
import { AGE_MS, IS_REAL, ISO_TIME, WEBHOOK_PAGE_EVENTS } from './outbox.ts';

/** The content of one request: whole pages, the oldest first. */
export interface Delivery {
  readonly pages: readonly string[];
  readonly events: readonly OrderEvent[];
  /** How often the oldest page was tried before. */
  readonly attempts: number;
}

/** Dead letters in a page, unless the query asks for fewer or more. */
const DEFAULT_LISTED = 100;
const FAILURE_CHARACTERS = 500;

interface PageRow {
  page: string;
  attempts: number;
  id: string;
  kind: string;
  order_id: string | null;
  sale_id: string;
  buyer_id: string;
  quantity: number;
  reference: string | null;
  metadata: Record<string, unknown> | null;
  at: string;
}

export class WebhookQueue {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Whether no page waits. Much cheaper than `next`. */
  async isEmpty(): Promise<boolean> {
    // In order, as in outbox.ts.
    const oldest = 'SELECT 1 FROM webhook_pages WHERE dead_at IS NULL ORDER BY id LIMIT 1';
    return (await rows(this.#db, oldest)).length === 0;
  }

  /**
   * The oldest pages, as many as fit in one request; `undefined` if none waits. A page that has failed is sent alone:
   * a page that the receiver never accepts must not block others, nor use up their attempts.
   */
  async next(): Promise<Delivery | undefined> {
    const found = await rows<PageRow>(
      this.#db,
      `SELECT p.id::text AS page, p.attempts, p.outbox_id || '-' || (p.before + u.place) AS id, ${kindIn('p.kind')} AS kind,
         o.order_id::text, o.sale_id, o.buyer_id, o.quantity, o.reference, o.metadata,
         to_char(p.happened_at AT TIME ZONE 'UTC', ${ISO_TIME}) AS at
       FROM (SELECT *, sum(cardinality(order_ids)) OVER in_line AS events,
           row_number() OVER in_line AS rank, max(attempts) OVER in_line AS tried
         FROM (SELECT * FROM webhook_pages WHERE dead_at IS NULL ORDER BY id LIMIT ?) f
         WINDOW in_line AS (ORDER BY id)) p
       LEFT JOIN LATERAL unnest(p.order_ids) WITH ORDINALITY AS u (order_id, place) ON true
       LEFT JOIN orders o ON o.order_id = u.order_id AND ${IS_REAL}
       WHERE p.events <= ? AND (p.tried = 0 OR p.rank = 1) ORDER BY p.id, u.place`,
      // A page has at least one event, so a request can't have more pages than events.
      [WEBHOOK_PAGE_EVENTS, WEBHOOK_PAGE_EVENTS],
    );
    if (found.length === 0) return undefined;
    return {
      pages: [...new Set(found.map(({ page }) => page))],
      events: found.flatMap((row) => (row.order_id === null ? [] : [eventOf(row, row.order_id)])),
      attempts: found[0]!.attempts,
    };
  }

  /** @returns how many of them still existed */
  async remove(pages: readonly string[]): Promise<number> {
    const removed = await rows(
      this.#db,
      'DELETE FROM webhook_pages WHERE id = ANY (?::bigint[]) AND dead_at IS NULL RETURNING id',
      [numbers(pages)],
    );
    return removed.length;
  }

  /** Counts a failed attempt. @returns the pages that became dead letters, and how many of the pages still existed */
  async failed(
    pages: readonly string[],
    maxAttempts: number,
    why: string,
  ): Promise<{ dead: string[]; found: number }> {
    const counted = await rows<{ id: string; is_dead: boolean }>(
      this.#db,
      `UPDATE webhook_pages SET attempts = attempts + 1, failed_with = ?,
         dead_at = CASE WHEN attempts + 1 >= ? THEN clock_timestamp() END
       WHERE id = ANY (?::bigint[]) AND dead_at IS NULL RETURNING id::text, dead_at IS NOT NULL AS is_dead`,
      // The text may come from a program, and Postgres stores no NUL.
      [why.slice(0, FAILURE_CHARACTERS).replaceAll('\0', '\ufffd'), maxAttempts, numbers(pages)],
    );
    return { dead: counted.filter((row) => row.is_dead).map(({ id }) => id), found: counted.length };
  }

  /** The backlog. `oldestPageMs` is the age of the oldest page that waits. */
  async waiting(): Promise<{ pages: number; oldestPageMs: number; deadPages: number }> {
    const [waiting] = await rows<{ pages: number; ms: number }>(
      this.#db,
      `SELECT count(*)::integer AS pages, ${AGE_MS} AS ms FROM webhook_pages WHERE dead_at IS NULL`,
    );
    return { pages: waiting!.pages, oldestPageMs: waiting!.ms, deadPages: await this.deadPages() };
  }

  async deadPages(): Promise<number> {
    const [dead] = await rows<{ pages: number }>(
      this.#db,
      'SELECT count(*)::integer AS pages FROM webhook_pages WHERE dead_at IS NOT NULL',
    );
    return dead!.pages;
  }

  /** A page of the dead letters, the oldest first. */
  async deadLetters({
    after = '0',
    limit = DEFAULT_LISTED,
  }: PageQuery = {}): Promise<Omit<DeadLetters, 'total'>> {
    const found = await rows<DeadLetter>(
      this.#db,
      `SELECT id::text, ${kindIn('kind')} AS kind,
         to_char(happened_at AT TIME ZONE 'UTC', ${ISO_TIME}) AS at,
         to_char(dead_at AT TIME ZONE 'UTC', ${ISO_TIME}) AS "deadAt",
         attempts, failed_with AS "failedWith", order_ids::text[] AS "orderIds"
       FROM webhook_pages WHERE dead_at IS NOT NULL AND webhook_pages.id > ?::bigint ORDER BY webhook_pages.id LIMIT ?`,
      [after, limit + 1],
    );
    const { page, next } = pageOf(found, limit, ({ id }) => id);
    return { listed: page, next };
  }

  /**
   * Queues dead letters again, before all younger pages. @param page the only one; missing: all. @returns how many
   */
  async resend(page?: string): Promise<number> {
    const [one, bindings] = page === undefined ? ['', []] : ['AND id = ?', [page]];
    const again = await rows(
      this.#db,
      `UPDATE webhook_pages SET dead_at = NULL, attempts = 0 WHERE dead_at IS NOT NULL ${one} RETURNING id`,
      bindings,
    );
    return again.length;
  }
}

function eventOf(row: PageRow, orderId: string): OrderEvent {
  const { id, kind, at, sale_id: saleId, buyer_id: buyerId, quantity, reference, metadata } = row;
  const noted = { ...(reference !== null && { reference }), ...(metadata !== null && { metadata }) };
  return { id, kind, orderId, saleId, buyerId, quantity, at, ...noted };
}
