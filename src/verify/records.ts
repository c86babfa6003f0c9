/**
 * Checks that each order is in its buyer's record: otherwise the buyer could buy again. held-orders.ts checks the
 * opposite.
 *
 * Both stores change while they are read. An order that is live in Postgres before and after its record was read was
 * in the record at that time, because it is removed only after it has ended. The same holds for an order of the log
 * that no cursor has passed after its record was read.
 */

import pLimit from 'p-limit';
import type { Backend, LogPosition, SegmentRef } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { homeSegment } from '../engine/sale/home-segment.ts';
import { chunksOf } from '../lib/chunks-of.ts';
import { groupBy } from '../lib/group-by.ts';
import { numbers } from '../postgres/array-literal.ts';
import { readCursors } from '../postgres/cursors.ts';
import { type Database, rows } from '../postgres/database.ts';
import { LIVE } from '../postgres/live-orders.ts';
import { holdingPages } from '../rebuild/load.ts';
import { after } from '../sync/apply/log-chain.ts';
import { type Finding, fault } from './finding.ts';
import { foreignRecords } from './foreign-write.ts';
import type { MissingRecord } from './repair-step.ts';
import type { Truth } from './truth.ts';

/** Orders whose buyers' records one query reads. */
const RECALL_ORDERS = 1_000;
const PARALLEL_SEGMENTS = 4;
/** At most this many orders are named in a finding. */
const NAMED_ORDERS = 5;
/** The search ends at this number of missing orders: a rebuild is less work than to restore more records one by one. */
const MAX_MISSING = 1_000;

/**
 * Finds live orders of the sale that are missing in their records, at most MAX_MISSING, and records that can't be
 * read.
 * @param unreadable buyers with unreadable records that are reported already
 * @throws StaleGeneration if the sale is rebuilt meanwhile
 */
export async function missingRecords(
  db: Database,
  backend: Backend,
  { row }: Truth,
  unreadable: ReadonlySet<string>,
): Promise<{ missing: MissingRecord[]; faults: string[] }> {
  const missing: MissingRecord[] = [];
  const faults = new Map<number, string>();
  for await (const { holdings } of holdingPages(db, row.sale, '')) {
    // Field by field: a spread of the order costs several times as much.
    const page = holdings
      .filter(({ buyerId }) => !unreadable.has(buyerId))
      .flatMap(({ buyerId, orders }) =>
        orders.map(({ orderId, quantity, key }) => ({ orderId, buyerId, quantity, key })),
      );
    const homes = groupBy(page, ({ buyerId }) => homeSegment(buyerId, row.sale.segments));
    const unheld = await pLimit(PARALLEL_SEGMENTS).map(homes, async ([segment, home]) => {
      if (faults.has(segment)) return [];
      const ref = { saleId: row.sale.id, segment, generation: row.generation };
      try {
        return await withoutRecord(backend, ref, home);
      } catch (error) {
        faults.set(segment, foreignRecords(segment, error));
        return [];
      }
    });
    missing.push(...(await stillLive(db, unheld.flat())));
    if (missing.length >= MAX_MISSING) break;
  }
  return {
    missing: missing.slice(0, MAX_MISSING),
    faults: [...faults].sort(([a], [b]) => a - b).map(([, why]) => why),
  };
}

/** The orders that their buyers' records lack. */
async function withoutRecord<T extends MissingRecord>(
  backend: Backend,
  ref: SegmentRef,
  orders: readonly T[],
): Promise<T[]> {
  const unheld: T[] = [];
  for (const chunk of chunksOf(orders, RECALL_ORDERS)) {
    const { holdings } = await backend.sales.recall(
      ref,
      chunk.map(({ buyerId }) => buyerId),
    );
    const isHeld = (order: T, i: number) =>
      holdings[i]!.orders.some(({ orderId }) => orderId === order.orderId);
    unheld.push(...chunk.filter((order, i) => !isHeld(order, i)));
  }
  return unheld;
}

async function stillLive(db: Database, orders: readonly MissingRecord[]): Promise<MissingRecord[]> {
  if (orders.length === 0) return [];
  const live = await rows<{ id: string }>(
    db,
    `SELECT order_id::text AS id FROM orders WHERE order_id = ANY (?::bigint[]) AND status IN ${LIVE}`,
    [numbers(orders.map(({ orderId }) => orderId))],
  );
  const ids = new Set(live.map(({ id }) => id));
  return orders.filter(({ orderId }) => ids.has(orderId));
}

/**
 * @param soldGap see `Judgement`. Positive: units that left the stock without a live order. Negative: units of live orders that
 * never left it
 */
export function judgeMissing(missing: readonly MissingRecord[], soldGap: number): Finding[] {
  if (missing.length === 0) return [];
  const units = missing.reduce((total, { quantity }) => total + quantity, 0);
  const what = `no buyer's record holds ${named(missing)}`;
  if (units === -soldGap) {
    return [
      fault('foreign_postgres', units, `${what}: written to Postgres by others, as the stock never had it`),
    ];
  }
  if (soldGap !== 0)
    return [fault('unexplained', 0, `${what}: written to Postgres by others, or gone from the backend`)];
  const repair =
    missing.length < MAX_MISSING ? ({ kind: 'records', missing } as const) : ({ kind: 'rebuild' } as const);
  return [fault('foreign_redis', 0, `${what}: it was removed, and its buyer could buy again`, repair)];
}

/** Log entries per query. */
const LOG_PAGE_ENTRIES = 50;
const PARALLEL_LOGS = 4;

/**
 * Finds orders that are in the log, not in Postgres yet, and missing in their buyers' records: at most MAX_MISSING. A
 * take writes an order to both log and record, and it is removed from the record only after a cursor has passed it.
 * @throws StaleGeneration if the sale is rebuilt meanwhile
 */
export async function unrecordedOrders(
  db: Database,
  backend: Backend,
  { row }: Truth,
  unreadable: ReadonlySet<string>,
): Promise<MissingRecord[]> {
  const cursors = await readCursors(db, row.sale.id);
  const found = await pLimit(PARALLEL_LOGS).map(cursors, (cursor) =>
    unrecordedIn(db, backend, { ...cursor, generation: row.generation }, unreadable),
  );
  return found.flat().slice(0, MAX_MISSING);
}

async function unrecordedIn(
  db: Database,
  backend: Backend,
  from: LogPosition,
  unreadable: ReadonlySet<string>,
): Promise<MissingRecord[]> {
  const unrecorded: MissingRecord[] = [];
  let position = from;
  for (let upTo: number | undefined; ; ) {
    const [read] = await backend.log.readLog([position], LOG_PAGE_ENTRIES);
    const { head, entries } = read!;
    // The search ends where the log ended at the first read: it grows meanwhile.
    upTo ??= head?.seq ?? 0;
    const orders = entries.flatMap(({ seq, orders }) =>
      orders.filter(({ buyerId }) => !unreadable.has(buyerId)).map((order) => ({ ...order, seq })),
    );
    const unheld = await withoutRecord(backend, from, orders);
    unrecorded.push(...(await notApplied(db, from, unheld)));
    const newest = entries.at(-1);
    if (!newest || newest.seq >= upTo || unrecorded.length >= MAX_MISSING) return unrecorded;
    position = after(position, newest);
  }
}

/** The orders that no cursor has passed by now. @throws StaleGeneration */
async function notApplied<T extends { readonly seq: number }>(
  db: Database,
  { saleId, segment, generation }: SegmentRef,
  orders: readonly T[],
): Promise<T[]> {
  if (orders.length === 0) return [];
  const cursor = (await readCursors(db, saleId))[segment];
  if (cursor?.generation !== generation) throw new StaleGeneration(saleId, generation);
  return orders.filter(({ seq }) => seq > cursor.seq);
}

/** @param soldGap see `Judgement`. A rebuild would load a stock that others have changed */
export function judgeUnrecorded(unrecorded: readonly MissingRecord[], soldGap: number): Finding[] {
  if (unrecorded.length === 0) return [];
  const what = `no buyer's record holds ${named(unrecorded)}, accepted and not in Postgres yet`;
  const repair = soldGap === 0 ? ({ kind: 'rebuild' } as const) : undefined;
  return [fault('foreign_redis', 0, `${what}: it was removed, and its buyer could buy again`, repair)];
}

function named(orders: readonly MissingRecord[]): string {
  const names = orders.slice(0, NAMED_ORDERS).map((o) => `${o.orderId} of buyer ${o.buyerId}`);
  const more = orders.length > names.length ? ` and ${orders.length - names.length} more` : '';
  return `order ${names.join(', ')}${more}`;
}
