/**
 * Whether buyers' records and orders name each other. A record that is gone lets its buyer buy again; an order that is gone,
 * or was written past the engine, shows in the first equation, and here it gets its name.
 *
 * Both are read while the sale moves. An order that lives in Postgres before and after its record was read was held by it
 * at that time, as it is taken out of it only after it has ceased to live. An entry below the cursors has its order in
 * Postgres; one that does not live is out of the record once its return is applied.
 */
import type { Backend, SegmentRef } from '../../engine/contract.ts';
import { StaleGeneration } from '../../engine/errors.ts';
import { groupBy } from '../../engine/group-by.ts';
import { homeSegment } from '../../engine/home-segment.ts';
import { numbers } from '../array-literal.ts';
import { type Database, rows } from '../database.ts';
import { LIVE } from '../live-orders.ts';
import { holdingPages } from '../rebuild/load.ts';
import { type Finding, fault } from './finding.ts';
import { foreignWriteIn } from './foreign-write.ts';
import type { MissingRecord } from './mend.ts';
import type { Truth } from './truth.ts';

/** Buyers whose records are asked for at a time. */
const RECALL_BUYERS = 1_000;
/** Orders that are named; and records that are put back one by one, where a rebuild is less work for more. */
const NAMED_ORDERS = 5;
const MAX_MISSING = 1_000;

/**
 * Live orders of the sale that no record holds, at most MAX_MISSING, and what is wrong with records that can't be read.
 * @throws StaleGeneration if it is rebuilt meanwhile
 */
export async function missingRecords(
  db: Database,
  backend: Backend,
  { row }: Truth,
): Promise<{ missing: MissingRecord[]; faults: string[] }> {
  const missing: MissingRecord[] = [];
  const faults = new Map<number, string>();
  for await (const { holdings } of holdingPages(db, row.sale, '')) {
    const page = holdings.flatMap(({ buyerId, orders }) => orders.map((order) => ({ ...order, buyerId })));
    const unheld: MissingRecord[] = [];
    for (const [segment, home] of groupBy(page, ({ buyerId }) => homeSegment(buyerId, row.sale.segments))) {
      if (faults.has(segment)) continue;
      const ref = { saleId: row.sale.id, segment, generation: row.generation };
      try {
        unheld.push(...(await withoutRecord(backend, ref, home)));
      } catch (error) {
        if (error instanceof StaleGeneration) throw error;
        const fault = foreignWriteIn(error);
        faults.set(segment, `the buyers' records of segment ${segment} were written by others: ${fault}`);
      }
    }
    missing.push(...(await stillLive(db, unheld)));
    if (missing.length >= MAX_MISSING) break;
  }
  return { missing: missing.slice(0, MAX_MISSING), faults: [...faults.values()] };
}

async function withoutRecord(
  backend: Backend,
  ref: SegmentRef,
  orders: readonly MissingRecord[],
): Promise<MissingRecord[]> {
  const unheld: MissingRecord[] = [];
  for (let at = 0; at < orders.length; at += RECALL_BUYERS) {
    const chunk = orders.slice(at, at + RECALL_BUYERS);
    const { holdings } = await backend.sales.recall(
      ref,
      chunk.map(({ buyerId }) => buyerId),
    );
    const isHeld = (order: MissingRecord, i: number) =>
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

/** @param soldOff units that have left the stock without a live order; below 0: live orders of as many units never left it */
export function judgeMissing(missing: readonly MissingRecord[], soldOff: number): Finding[] {
  if (missing.length === 0) return [];
  const units = missing.reduce((total, { quantity }) => total + quantity, 0);
  const named = missing.slice(0, NAMED_ORDERS).map((o) => `${o.orderId} of buyer ${o.buyerId}`);
  const more = missing.length > named.length ? ` and ${missing.length - named.length} more` : '';
  const what = `no buyer's record holds order ${named.join(', ')}${more}`;
  if (units === -soldOff) {
    return [
      fault('foreign_postgres', units, `${what}: written to Postgres by others, as the stock never had it`),
    ];
  }
  if (soldOff !== 0)
    return [fault('unexplained', 0, `${what}: written to Postgres by others, or gone from the backend`)];
  const mend =
    missing.length < MAX_MISSING ? ({ kind: 'records', missing } as const) : ({ kind: 'rebuild' } as const);
  return [fault('foreign_redis', 0, `${what}: it was removed, and its buyer could buy again`, mend)];
}

/** Names the orders that records hold and that do not live in Postgres although nothing is about to take them back. */
export async function goneOrders(db: Database, backend: Backend, { row, cursors }: Truth): Promise<string[]> {
  const { sale, generation } = row;
  const gone: string[] = [];
  for (const { segment, seq } of cursors) {
    const ref = { saleId: sale.id, segment, generation };
    let page = '';
    do {
      const { holdings, next } = await backend.audits.records(ref, page);
      page = next;
      const held = holdings.flatMap(({ buyerId, orders }) =>
        orders.filter((order) => order.seq <= seq).map(({ orderId }) => ({ orderId, buyerId })),
      );
      const dead = await notLive(db, held);
      if (dead.length === 0) continue;
      const again = await backend.sales.recall(
        ref,
        dead.map(({ buyerId }) => buyerId),
      );
      for (const [i, { orderId, buyerId }] of dead.entries()) {
        const isHeld = again.holdings[i]!.orders.some((order) => order.orderId === orderId);
        if (isHeld) gone.push(`${orderId} of buyer ${buyerId}`);
        if (gone.length === NAMED_ORDERS) return gone;
      }
    } while (page !== '');
  }
  return gone;
}

interface Held {
  readonly orderId: string;
  readonly buyerId: string;
}

/** Those of which Postgres knows no live order, and no return that is still to be applied. */
async function notLive(db: Database, held: readonly Held[]): Promise<Held[]> {
  if (held.length === 0) return [];
  const known = await rows<{ id: string }>(
    db,
    `SELECT order_id::text AS id FROM orders o WHERE order_id = ANY (?::bigint[]) AND (status IN ${LIVE}
       OR EXISTS (SELECT 1 FROM stock_returns r WHERE r.order_id = o.order_id AND r.applied_at IS NULL))`,
    [numbers(held.map(({ orderId }) => orderId))],
  );
  const ids = new Set(known.map(({ id }) => id));
  return held.filter(({ orderId }) => !ids.has(orderId));
}
