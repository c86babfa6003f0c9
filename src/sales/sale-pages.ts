/** Reads sales with the numbers that a status shows, one or a page of them, without reading orders. */
import type { Knex } from 'knex';
import type { SaleState } from '../engine/contract.ts';
import { SALE_ID_PATTERN } from '../engine/limits.ts';
import { type ArchivedFilter, COUNTED_OPEN_OFFERS, parseSaleCursor } from '../operations/sale-list.ts';
import { UnknownSale } from '../operations/sale-operations.ts';
import { type Database, rows } from '../postgres/database.ts';
import { decodeSale, type RawSale, type SaleRow } from './sale-rows.ts';

export interface SummedSale extends SaleRow {
  /** Units that operators have added since the creation, minus those that they have withdrawn. */
  readonly movedUnits: number;
  /** Erasures of buyers that were asked for, and are not done yet. */
  readonly waitingErasures: number;
  /** As in `SaleStatus`. */
  readonly behindHead: number | undefined;
  readonly offeredUnits: number | undefined;
}

export interface SalePageQuery {
  readonly state?: SaleState | undefined;
  /** Whether archived sales are in the list, or are the only ones. Default: neither. */
  readonly archived?: ArchivedFilter | undefined;
  /** The window begins at this time or later, and before the other: ISO 8601. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** The cursor of the last sale of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

interface SummedRow extends RawSale {
  moved: string;
  erasing: string;
  behind_head: string | null;
  offered: string | null;
  /** Microseconds. */
  created: string;
}

const HAD_QUEUE = "(s.queue <> 'off' OR s.had_queue)";
/** Nobody waits for an offer after the end of a sale. */
const BEHIND_HEAD = `CASE WHEN ${HAD_QUEUE} THEN coalesce(
  CASE WHEN s.queue <> 'off' AND s.state <> 'closed' AND (s.ends_at IS NULL OR s.ends_at > now())
    THEN (SELECT greatest(0, q.last_number - q.head) FROM queues q WHERE q.sale_id = s.id) END, 0) END`;
/**
 * The offers stand in a short index, and their orders are looked up by id. With a join Postgres may read all orders, or expect so much work
 * that it compiles the statement.
 */
const OFFERED = `CASE WHEN ${HAD_QUEUE} THEN (
  SELECT CASE WHEN count(*) <= ${COUNTED_OPEN_OFFERS} THEN coalesce(sum(o.quantity), 0) END FROM orders o
  WHERE o.order_id = ANY (ARRAY(SELECT p.order_id FROM places p
    WHERE p.sale_id = s.id AND p.state = 'offered' LIMIT ${COUNTED_OPEN_OFFERS + 1}))) END`;
const COLUMNS = `s.*, (extract(epoch FROM s.created_at) * 1000000)::bigint AS created,
  (SELECT coalesce(sum(m.units), 0) FROM stock_movements m WHERE m.sale_id = s.id) AS moved,
  (SELECT count(*) FROM erasures e WHERE e.sale_id = s.id) AS erasing,
  ${BEHIND_HEAD} AS behind_head, ${OFFERED} AS offered`;

/** @throws UnknownSale */
export async function readSummedSale(db: Database, saleId: string): Promise<SummedSale> {
  const found = SALE_ID_PATTERN.test(saleId)
    ? await rows<SummedRow>(
        db,
        `SELECT ${COLUMNS} FROM sales s WHERE s.id = ? AND s.deleting_since IS NULL`,
        [saleId],
      )
    : [];
  if (!found[0]) throw new UnknownSale(saleId);
  return decode(found[0]);
}

/**
 * The newest sales first. @returns the page, and the cursor of its last sale if another page follows
 */
export async function readSalePage(
  db: Database,
  { state, archived = 'exclude', since, until, after, limit }: SalePageQuery,
): Promise<{ sales: SummedSale[]; next: string | undefined }> {
  const conditions = ['s.deleting_since IS NULL'];
  const bindings: Knex.RawBinding[] = [];
  if (state !== undefined) {
    conditions.push('s.state = ?');
    bindings.push(state);
  }
  if (archived !== 'include')
    conditions.push(`s.archived_at IS ${archived === 'only' ? 'NOT NULL' : 'NULL'}`);
  if (since !== undefined) {
    conditions.push('s.starts_at >= ?::timestamptz');
    bindings.push(since);
  }
  if (until !== undefined) {
    conditions.push('s.starts_at < ?::timestamptz');
    bindings.push(until);
  }
  if (after !== undefined) {
    const { created, saleId } = parseSaleCursor(after)!;
    const at = "'epoch'::timestamptz + ? * interval '1 microsecond'";
    // Postgres can use the index only for the first condition.
    conditions.push(`s.created_at <= ${at} AND (s.created_at < ${at} OR s.id > ?)`);
    bindings.push(created, created, saleId);
  }
  const found = await rows<SummedRow>(
    db,
    `SELECT ${COLUMNS} FROM sales s WHERE ${conditions.join(' AND ')} ORDER BY s.created_at DESC, s.id LIMIT ?`,
    [...bindings, limit + 1],
  );
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    sales: page.map(decode),
    next: found.length > limit && last ? `${last.created}.${last.id}` : undefined,
  };
}

function decode(row: SummedRow): SummedSale {
  const optional = (value: string | null) => (value === null ? undefined : Number(value));
  return {
    ...decodeSale(row),
    movedUnits: Number(row.moved),
    waitingErasures: Number(row.erasing),
    behindHead: optional(row.behind_head),
    offeredUnits: optional(row.offered),
  };
}
