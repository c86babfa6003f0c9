/**
 * Loads a sale's state into the backend from Postgres: the part of a rebuild (rebuild.ts) between its new generation
 * and its publication. If it breaks off, another process can continue it.
 *
 * Holdings come page by page, in the order of buyers' ids. Each page is written to every segment, and in the same script
 * call the last buyer's id of the page. So that id in a segment shows how far the segment was loaded, even if other
 * segments were lost, and a continuation begins at the smallest of these ids. Two processes that load the same generation
 * write the same: each read of a buyer's orders includes the orders returned in this generation.
 */
import type { Knex } from 'knex';
import pLimit from 'p-limit';
import type { Backend, Holding, Sale } from '../engine/contract.ts';
import { homeSegment } from '../engine/sale/home-segment.ts';
import { splitEvenly } from '../engine/sale/split-evenly.ts';
import { groupBy } from '../lib/group-by.ts';
import { texts } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import { LIVE } from '../postgres/live-orders.ts';
import type { SaleRow } from '../sales/sale-rows.ts';

const HOLDINGS_PAGE_ORDERS = 10_000;
const PARALLEL_LOADS = 8;

/**
 * Loads every segment with its share of the stock, and with the buyers of the draft or without buyers. @throws
 * StaleGeneration
 */
export async function loadSegments(
  backend: Backend,
  { sale, generation, stock }: SaleRow,
  draft?: string,
): Promise<void> {
  const { id: saleId, segments, perBuyerLimit } = sale;
  await pLimit(PARALLEL_LOADS).map(splitEvenly(stock, segments), (left, segment) =>
    backend.sales.loadSegment({
      saleId,
      segment,
      generation,
      left,
      perBuyerLimit,
      ...(draft === undefined ? {} : { draft }),
    }),
  );
}

/**
 * Loads buyers' holdings into segments that are loaded.
 * @param from all buyers up to this id are loaded already; `''`: none
 * @param progress called with the number of loaded orders and their total
 * @returns the number of loaded buyers
 * @throws StaleGeneration
 */
export async function loadBuyers(
  db: Database,
  backend: Backend,
  row: SaleRow,
  from: string,
  progress: (done: number, total: number) => void,
): Promise<number> {
  const limit = pLimit(PARALLEL_LOADS);
  const { id: saleId, segments } = row.sale;
  const [total, before] = await countHeld(db, row.sale, from);
  let [orders, buyers] = [before, 0];
  progress(orders, total);
  for await (const page of holdingPages(db, row.sale, from, row.generation)) {
    const bySegment = groupBy(page.holdings, (holding) => homeSegment(holding.buyerId, segments));
    await limit.map(Array.from({ length: segments }), (_, segment) =>
      backend.sales.loadHoldings(
        { saleId, segment, generation: row.generation },
        bySegment.get(segment) ?? [],
        page.upTo,
      ),
    );
    buyers += page.holdings.length;
    orders += page.orders;
    progress(orders, total);
  }
  await loadReturned(db, backend, row);
  return buyers;
}

/**
 * Loads orders that were returned since this generation began. Their units are not in the loaded stock: they come back when
 * the return is applied, which also removes the order from its buyer's record. So the record must hold the order until then,
 * also if its buyer's page was read after the return. Orders that are returned after this read are in the records: they were
 * live when their buyer's page was read.
 */
async function loadReturned(db: Database, backend: Backend, row: SaleRow): Promise<void> {
  const { sale, generation } = row;
  for (const holding of await readReturned(db, row)) {
    const segment = homeSegment(holding.buyerId, sale.segments);
    await backend.sales.loadHoldings({ saleId: sale.id, segment, generation }, [holding]);
  }
}

/**
 * Reads everything at one instant: an order returned between two reads would be in neither, and its record would be
 * overwritten without it.
 */
async function readReturned(db: Database, { sale, generation }: SaleRow): Promise<Holding[]> {
  return atOneInstant(db, async (trx) => {
    const returned = await readReturnedOrders(trx, sale, generation);
    const kept = await readHeldBy(
      trx,
      sale,
      returned.map((row) => row.buyer_id),
    );
    return holdingsOf([...returned, ...kept]);
  });
}

interface HeldRow {
  buyer_id: string;
  order_id: string;
  quantity: number;
  idempotency_key: string | null;
}

/**
 * Held orders. Those from before a raise of the limit from one unit are in one index, those from after it in another.
 * Each is read with its own condition, because one query for both could use neither.
 * @param condition for each of the two, with its bindings
 */
function readHeld(
  trx: Knex,
  sale: Sale,
  condition: string,
  bindings: readonly Knex.Value[],
  rest = '',
): Promise<HeldRow[]> {
  const half = (which: string) =>
    `(SELECT buyer_id, order_id::text, quantity, idempotency_key FROM orders
      WHERE sale_id = ? AND ${which} AND status IN ${LIVE} AND ${condition})`;
  const ofHalf = [sale.id, ...bindings];
  return rows<HeldRow>(trx, `${half('one_per_buyer')} UNION ALL ${half('NOT one_per_buyer')} ${rest}`, [
    ...ofHalf,
    ...ofHalf,
  ]);
}

const readHeldBy = (db: Knex, sale: Sale, buyerIds: readonly string[]) =>
  readHeld(db, sale, 'buyer_id = ANY (?::text[])', [texts(buyerIds)]);

/** The next held orders. Each half is as long as the page, which may be all from one of them. */
function readHeldAfter(trx: Knex, sale: Sale, after: string): Promise<HeldRow[]> {
  const next = `ORDER BY buyer_id LIMIT ${HOLDINGS_PAGE_ORDERS}`;
  return readHeld(trx, sale, `buyer_id > ? ${next}`, [after], next);
}

/** The number of held orders, and of those up to this buyer. */
async function countHeld(db: Database, sale: Sale, upTo: string): Promise<[total: number, before: number]> {
  const counts = await rows<{ total: string; before: string }>(
    db,
    ['one_per_buyer', 'NOT one_per_buyer']
      .map(
        (which) =>
          `SELECT count(*) AS total, count(*) FILTER (WHERE buyer_id <= ?) AS before FROM orders
           WHERE sale_id = ? AND ${which} AND status IN ${LIVE}`,
      )
      .join(' UNION ALL '),
    [upTo, sale.id, upTo, sale.id],
  );
  const sum = (of: (count: { total: string; before: string }) => string) =>
    counts.reduce((all, count) => all + Number(of(count)), 0);
  return [sum(({ total }) => total), sum(({ before }) => before)];
}

interface HoldingPage {
  readonly holdings: readonly Holding[];
  readonly orders: number;
  readonly upTo: string;
}

/**
 * Buyers' holdings, in the order of their ids. The next page is read while one is loaded.
 * @param loading the generation being loaded: orders returned in it count as held
 */
export async function* holdingPages(
  db: Database,
  sale: Sale,
  from: string,
  loading?: number,
): AsyncGenerator<HoldingPage> {
  let page = await readPage(db, sale, from, loading);
  while (page) {
    const next = readPage(db, sale, page.upTo, loading);
    // If loading this page fails, the promise of the next one is not awaited.
    next.catch(() => {});
    yield page;
    page = await next;
  }
}

/**
 * Reads one page; a buyer is never split between two. The order is that of the index and no finer: otherwise a
 * planner without statistics, as for a new sale, would read and sort all remaining rows for each page.
 */
function readPage(
  db: Database,
  sale: Sale,
  after: string,
  loading: number | undefined,
): Promise<HoldingPage | undefined> {
  return atOneInstant(db, async (trx) => {
    const found = await readHeldAfter(trx, sale, after);
    if (found.length === 0) return undefined;
    const whole = found.length < HOLDINGS_PAGE_ORDERS ? found : withoutLastBuyer(found);
    const upTo = whole.at(-1)!.buyer_id;
    const buyerIds = new Set(whole.map((row) => row.buyer_id));
    const returned = loading === undefined ? [] : await readReturnedOrders(trx, sale, loading);
    const ofPage = returned.filter((row) => buyerIds.has(row.buyer_id));
    return { holdings: holdingsOf([...whole, ...ofPage]), orders: whole.length, upTo };
  });
}

/** Orders that were returned in this generation. */
function readReturnedOrders(trx: Knex, sale: Sale, generation: number): Promise<HeldRow[]> {
  return rows<HeldRow>(
    trx,
    `SELECT o.buyer_id, o.order_id::text, o.quantity, o.idempotency_key
     FROM stock_returns r JOIN orders o ON o.order_id = r.order_id
     WHERE r.sale_id = ? AND r.generation = ?`,
    [sale.id, generation],
  );
}

function atOneInstant<T>(db: Database, read: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  return db.transaction(read, { isolationLevel: 'repeatable read', readOnly: true });
}

/** What these buyers hold; buyers without orders are left out. */
export async function readHoldings(
  db: Database,
  sale: Sale,
  buyerIds: readonly string[],
): Promise<Holding[]> {
  return holdingsOf(await readHeldBy(db, sale, buyerIds));
}

function holdingsOf(held: readonly HeldRow[]): Holding[] {
  return [...groupBy(held, (row) => row.buyer_id)].map(([buyerId, rows]) => ({
    buyerId,
    orders: rows.map(heldOrder).sort((a, b) => (a.orderId < b.orderId ? -1 : 1)),
  }));
}

/** A buyer holds at most MAX_PER_BUYER_LIMIT orders, a tenth of a page, so the rest is not empty. */
function withoutLastBuyer(page: HeldRow[]): HeldRow[] {
  const last = page.at(-1)!.buyer_id;
  return page.filter((row) => row.buyer_id !== last);
}

function heldOrder({ order_id, quantity, idempotency_key }: HeldRow) {
  return { orderId: order_id, quantity, key: idempotency_key ?? '', seq: 0 };
}
