/**
 * Builds a sale's state in the backend from Postgres: at its creation, at the start of an in-process backend, and when
 * the backend has lost data.
 *
 *   freeze -> salvage -> next generation -> load -> publish
 *
 * freeze: no more takes, and nobody can load or publish this generation any more. salvage: what the frozen logs hold
 * goes to Postgres; what is known to be missing then is lost (losses.ts). next generation: one transaction counts it up and
 * sets the cursors to zero. load: every segment gets its share of `sales.stock` and its buyers. publish: the segments open,
 * the record names the generation, nodes are told.
 *
 * Crash points. Before the next generation: nothing has changed but the freeze; whoever finds the sale stale starts over.
 * After it: the backend's record names an older generation than Postgres, which is how the next one knows.
 *
 * Two at once, with or without a lock: only one can count the generation up from the one he has read. The one that is
 * behind finds its load or publish shut out, either by the newer generation or by the other's freeze of the older one;
 * a salvage checks the generation in its own transaction. The loser ends with StaleGeneration and has changed nothing.
 */
import type { Knex } from 'knex';
import pLimit from 'p-limit';
import type { Backend, Holding, KnownEntry, LogPosition, LogRead, Rejection } from '../engine/contract.ts';
import { BackendCorrupt, StaleGeneration } from '../engine/errors.ts';
import { groupBy } from '../engine/group-by.ts';
import { homeSegment } from '../engine/home-segment.ts';
import { shares } from '../engine/shares.ts';
import { sellEach } from './apply-each.ts';
import { batchOf } from './batch.ts';
import { type Database, rows } from './database.ts';
import { knownOrders } from './known-orders.ts';
import { after } from './log-chain.ts';
import { type Evidence, type Loss, lossesOf } from './losses.ts';
import { readSale, type SaleRow } from './sale-rows.ts';

const SALVAGE_ENTRIES = 500;
const HOLDINGS_PAGE_ORDERS = 10_000;
const PARALLEL_LOADS = 8;

export interface RebuildReport {
  readonly generation: number;
  readonly salvagedOrders: number;
  /** Salvaged orders that Postgres refused. */
  readonly rejected: readonly Rejection[];
  readonly loadedBuyers: number;
}

export interface Witness {
  /** The newest entry of each segment's log that was seen. */
  readonly newest: readonly KnownEntry[];
  /** Told of each segment that has lost orders, once it is certain that no other rebuild counts them too. */
  ordersLost(loss: Loss): void;
}

const NO_WITNESS: Witness = { newest: [], ordersLost() {} };

/** @throws StaleGeneration if another rebuild was faster; the database's or backend's error */
export async function rebuildSale(
  db: Database,
  backend: Backend,
  saleId: string,
  witness = NO_WITNESS,
): Promise<RebuildReport | undefined> {
  const before = await readSale(db, saleId);
  if (!before) return undefined;
  const rejected: Rejection[] = [];
  let salvagedOrders = 0;
  let evidence: Evidence[] = [];
  for (const generation of await generationsOf(backend, before)) {
    await backend.sales.freeze(saleId, before.sale.segments, generation);
    evidence = await salvage(db, backend, before, generation, rejected);
    for (const { salvaged } of evidence) salvagedOrders += salvaged;
  }
  const losses = await lossesOf(db, saleId, evidence, witness.newest);
  const row = await nextGeneration(db, before);
  for (const loss of losses) witness.ordersLost(loss);
  await loadSegments(backend, row);
  const loadedBuyers = await loadBuyers(db, backend, row);
  await backend.sales.publish(row);
  return { generation: row.generation, salvagedOrders, rejected, loadedBuyers };
}

/**
 * The newest last. A backend that was restored from a copy may sell in an older generation than Postgres has: its logs
 * count too.
 */
async function generationsOf(backend: Backend, { sale, generation }: SaleRow): Promise<number[]> {
  const record = await backend.sales.read(sale.id);
  return record && record.generation < generation ? [record.generation, generation] : [generation];
}

async function salvage(
  db: Database,
  backend: Backend,
  row: SaleRow,
  generation: number,
  rejected: Rejection[],
): Promise<Evidence[]> {
  const evidence: Evidence[] = [];
  const { id: saleId, segments } = row.sale;
  for (let segment = 0; segment < segments; segment++) {
    let position: LogPosition = { saleId, segment, generation, seq: 0, tail: '' };
    let salvaged = 0;
    for (;;) {
      const [read] = await backend.log.readLog([position], SALVAGE_ENTRIES);
      const last = read?.entries.at(-1);
      if (read?.fault !== undefined) throw new BackendCorrupt(`log of segment ${segment}: ${read.fault}`);
      if (!read || !last) {
        evidence.push({ head: read?.head, salvaged });
        break;
      }
      salvaged += await db.transaction((trx) => applyUnknown(trx, row, read, rejected));
      position = after(position, last);
    }
  }
  return evidence;
}

/** Applies those orders of a log that Postgres does not have. @returns how many those were */
async function applyUnknown(
  trx: Knex.Transaction,
  { sale, generation }: SaleRow,
  read: LogRead,
  rejected: Rejection[],
): Promise<number> {
  const current = await rows(trx, 'SELECT 1 FROM sales WHERE id = ? AND generation = ? FOR UPDATE', [
    sale.id,
    generation,
  ]);
  if (current.length === 0) throw new StaleGeneration(sale.id, generation);
  const ids = read.entries.flatMap((entry) => entry.orders.map((order) => order.orderId));
  const known = await knownOrders(trx, ids);
  const entries = read.entries.map((entry) => ({
    ...entry,
    orders: entry.orders.filter((order) => !known.has(order.orderId)),
  }));
  const { slices, orders } = batchOf([{ ...read, entries }], Number.POSITIVE_INFINITY);
  if (orders > 0) rejected.push(...(await sellEach(trx, slices)).values());
  return orders;
}

/** Returns that wait are part of `sales.stock` and of the orders that are loaded next: they are done with this. */
async function nextGeneration(db: Database, { sale, generation }: SaleRow): Promise<SaleRow> {
  return db.transaction(async (trx) => {
    const raised = await rows(
      trx,
      'UPDATE sales SET generation = generation + 1 WHERE id = ? AND generation = ? RETURNING id',
      [sale.id, generation],
    );
    if (raised.length === 0) throw new StaleGeneration(sale.id, generation);
    await trx.raw('DELETE FROM segment_cursors WHERE sale_id = ?', [sale.id]);
    await trx.raw(
      'INSERT INTO segment_cursors (sale_id, segment, generation) SELECT ?, n, ? FROM generate_series(0, ? - 1) AS n',
      [sale.id, generation + 1, sale.segments],
    );
    await trx.raw('UPDATE stock_returns SET applied_at = now() WHERE sale_id = ? AND applied_at IS NULL', [
      sale.id,
    ]);
    return (await readSale(trx, sale.id))!;
  });
}

async function loadSegments(backend: Backend, { sale, generation, stock }: SaleRow): Promise<void> {
  const limit = pLimit(PARALLEL_LOADS);
  await limit.map(shares(stock, sale.segments), (left, segment) =>
    backend.sales.loadSegment({
      saleId: sale.id,
      segment,
      generation,
      left,
      perBuyerLimit: sale.perBuyerLimit,
    }),
  );
}

async function loadBuyers(db: Database, backend: Backend, row: SaleRow): Promise<number> {
  const limit = pLimit(PARALLEL_LOADS);
  let buyers = 0;
  for await (const page of holdingPages(db, row)) {
    buyers += page.length;
    const bySegment = groupBy(page, (holding) => homeSegment(holding.buyerId, row.sale.segments));
    await limit.map([...bySegment], ([segment, holdings]) =>
      backend.sales.loadHoldings({ saleId: row.sale.id, segment, generation: row.generation }, holdings),
    );
  }
  return buyers;
}

interface HeldRow {
  buyer_id: string;
  order_id: string;
  quantity: number;
  idempotency_key: string | null;
}

/** What buyers hold, page by page in the order of their ids. A buyer is never cut in two. */
async function* holdingPages(db: Database, { sale }: SaleRow): AsyncGenerator<Holding[]> {
  let after = '';
  for (;;) {
    const page = await rows<HeldRow>(
      db,
      `SELECT buyer_id, order_id::text, quantity, idempotency_key FROM orders
       WHERE sale_id = ? AND ${sale.perBuyerLimit === 1 ? '' : 'NOT'} one_per_buyer AND buyer_id > ?
         AND status IN ('unpaid', 'paid', 'redeemed')
       ORDER BY buyer_id, order_id LIMIT ?`,
      [sale.id, after, HOLDINGS_PAGE_ORDERS],
    );
    if (page.length === 0) return;
    const whole = page.length < HOLDINGS_PAGE_ORDERS ? page : withoutLastBuyer(page);
    after = whole.at(-1)!.buyer_id;
    yield [...groupBy(whole, (row) => row.buyer_id)].map(([buyerId, held]) => ({
      buyerId,
      orders: held.map(heldOrder),
    }));
  }
}

/** A buyer holds at most MAX_PER_BUYER_LIMIT orders, a tenth of a page: something is left. */
function withoutLastBuyer(page: HeldRow[]): HeldRow[] {
  const last = page.at(-1)!.buyer_id;
  return page.filter((row) => row.buyer_id !== last);
}

function heldOrder({ order_id, quantity, idempotency_key }: HeldRow) {
  return { orderId: order_id, quantity, key: idempotency_key ?? '', seq: 0 };
}
