/**
 * Loads a sale's state into the backend from Postgres: the part of a rebuild (rebuild.ts) between its new generation
 * and its publication. If it breaks off, another process can continue it.
 *
 * Holdings come page by page, in the order of buyers' ids; the last page ends after all ids. Each page is written to every
 * segment, and in the same script call the id up to which the segment has all its buyers. A continuation begins at the smallest
 * of these ids. The backend refuses a page unless the segment has all pages before it, and a publication unless it has the
 * last one. So a backend that goes back to an earlier state, between any two writes, is not published without the records that
 * it has lost: the rebuild breaks off, and the next one goes on where the segments now are.
 *
 * Orders that were returned since this generation began count as held. Their units are not in the loaded stock: they come back
 * when the return is applied, which also removes the order from its buyer's record. So the record must hold the order until
 * then. A page is read at one instant, with the returned orders of its range: an order that was live when the generation began
 * is among the one or the other, whenever the page is read. So two processes that load the same generation write the same.
 */
import type { Knex } from 'knex';
import pLimit from 'p-limit';
import type { Backend, HeldOrder, Holding, HoldingsPart, Sale, SegmentLoad } from '../engine/contract.ts';
import { AFTER_ALL_IDS } from '../engine/limits.ts';
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
 * Loads every segment with its share of the stock.
 * @param buyersOf the buyers of a segment. Missing: they are loaded afterwards
 * @throws StaleGeneration
 */
export async function loadSegments(
  backend: Backend,
  { sale, generation, stock }: SaleRow,
  buyersOf?: (segment: number) => NonNullable<SegmentLoad['buyers']>,
): Promise<void> {
  const { id: saleId, segments, perBuyerLimit } = sale;
  await pLimit(PARALLEL_LOADS).map(splitEvenly(stock, segments), (left, segment) =>
    backend.sales.loadSegment({
      saleId,
      segment,
      generation,
      left,
      perBuyerLimit,
      ...(buyersOf && { buyers: buyersOf(segment) }),
    }),
  );
}

/**
 * Loads buyers' holdings into segments that are loaded.
 * @param from all buyers up to this id are loaded already; `''`: none, AFTER_ALL_IDS: all
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
        { after: page.after, upTo: page.upTo, holdings: bySegment.get(segment) ?? [] },
      ),
    );
    buyers += page.holdings.length;
    orders += page.orders;
    progress(orders, total);
  }
  return buyers;
}

interface HeldRow {
  buyer_id: string;
  order_id: string;
  quantity: number;
  idempotency_key: string | null;
}

/**
 * Held orders. Orders that were made while the limit was one unit are in one index, all others in a second one. Each index is read
 * with its own condition, because one query for both could use neither.
 * @param condition used for both indexes, with its bindings
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

/** One page of all holdings of the sale, whatever their segments. */
interface HoldingPage extends HoldingsPart {
  /** How many of the orders are live; the others were returned in the generation being loaded. */
  readonly orders: number;
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
  const pageAfter = (id: string) => (id === AFTER_ALL_IDS ? undefined : readPage(db, sale, id, loading));
  let page = await pageAfter(from);
  while (page) {
    const next = pageAfter(page.upTo);
    // If loading this page fails, the promise of the next one is not awaited.
    next?.catch(() => {});
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
): Promise<HoldingPage> {
  return atOneInstant(db, async (trx) => {
    const found = await readHeldAfter(trx, sale, after);
    const isLast = found.length < HOLDINGS_PAGE_ORDERS;
    const whole = isLast ? found : withoutLastBuyer(found);
    const upTo = isLast ? AFTER_ALL_IDS : whole.at(-1)!.buyer_id;
    const range = 'o.buyer_id > ? AND o.buyer_id <= ?';
    const returned =
      loading === undefined ? [] : await readReturned(trx, sale, loading, range, [after, upTo]);
    const holdings = holdingsOf([...whole, ...returned]).sort((a, b) => (a.buyerId < b.buyerId ? -1 : 1));
    return { holdings, orders: whole.length, after, upTo };
  });
}

/** Orders that were returned in this generation. @param condition for the order `o`, with its bindings */
function readReturned(
  trx: Knex,
  sale: Sale,
  generation: number,
  condition: string,
  bindings: readonly Knex.Value[],
): Promise<HeldRow[]> {
  return rows<HeldRow>(
    trx,
    `SELECT o.buyer_id, o.order_id::text, o.quantity, o.idempotency_key
     FROM stock_returns r JOIN orders o ON o.order_id = r.order_id
     WHERE r.sale_id = ? AND r.generation = ? AND ${condition}`,
    [sale.id, generation, ...bindings],
  );
}

function atOneInstant<T>(db: Database, read: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  return db.transaction(read, { isolationLevel: 'repeatable read', readOnly: true });
}

/** What these buyers hold, the orders returned in this generation included; buyers without orders are left out. */
export function readHoldings(
  db: Database,
  { sale, generation }: SaleRow,
  buyerIds: readonly string[],
): Promise<Holding[]> {
  const these = [texts(buyerIds)];
  return atOneInstant(db, async (trx) => {
    const held = await readHeld(trx, sale, 'buyer_id = ANY (?::text[])', these);
    const returned = await readReturned(trx, sale, generation, 'o.buyer_id = ANY (?::text[])', these);
    return holdingsOf([...held, ...returned]);
  });
}

function holdingsOf(held: readonly HeldRow[]): Holding[] {
  return [...groupBy(held, (row) => row.buyer_id)].map(([buyerId, ofBuyer]) => ({
    buyerId,
    orders: ofBuyer.map(heldOrder).sort((a, b) => (a.orderId < b.orderId ? -1 : 1)),
  }));
}

/** A buyer holds at most MAX_PER_BUYER_LIMIT orders, a tenth of a page, so the rest is not empty. */
function withoutLastBuyer(page: HeldRow[]): HeldRow[] {
  const last = page.at(-1)!.buyer_id;
  return page.filter((row) => row.buyer_id !== last);
}

function heldOrder({ order_id, quantity, idempotency_key }: HeldRow): HeldOrder {
  return { orderId: order_id, quantity, key: idempotency_key ?? '', seq: 0 };
}
