/**
 * A buyer's own orders. An index on buyers over all sales would cost every commit, so the orders of all sales are
 * found sale by sale, the newest sale first. One request searches at most PROBED_SALES sales, each with three look-ups in
 * an index, and returns the place where the next request continues.
 */
import type { HeldOrder } from '../engine/contract.ts';
import { SALE_ID_PATTERN } from '../engine/limits.ts';
import { isOrderId } from '../engine/order-id.ts';
import { DEFAULT_PAGE_ORDERS, type OrderPage } from '../operations/order-list.ts';
import type { Order } from '../operations/order-operations.ts';
import { type Database, rows } from '../postgres/database.ts';
import { ofBuyer } from '../postgres/live-orders.ts';
import { readOrderPage } from './order-pages.ts';
import { type OrderRow, orderOf } from './order-reader.ts';

/** Most sales that are searched for one page. */
export const PROBED_SALES = 1_000;

export interface OwnQuery {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/** An order that is accepted and not in Postgres yet. */
export interface AcceptedOrder {
  readonly orderId: string;
  readonly saleId: string;
  readonly quantity: number;
}

export interface OwnPage extends OrderPage {
  /** On the first page only: orders that are only in the buyer's record. */
  readonly accepted: readonly AcceptedOrder[];
}

export interface BuyersHoldings {
  /** The segment's cursor: orders whose log entry is at or below it are in Postgres. */
  readonly committed: number;
  readonly orders: readonly HeldOrder[];
}

/**
 * The buyer's orders in one sale, the newest first. The record is read first: an order leaves it only after Postgres
 * has the order, so none is missed in between.
 * @param recordOf reads the buyer's record; `undefined` if the backend does not have the sale
 * @returns `undefined` if there is no such sale
 */
export async function readOwnOrdersOfSale(
  db: Database,
  { saleId, buyerId }: { readonly saleId: string; readonly buyerId: string },
  query: OwnQuery,
  recordOf: () => Promise<BuyersHoldings | undefined>,
): Promise<OwnPage | undefined> {
  const record = query.after === undefined ? await recordOf() : undefined;
  const page = await readOrderPage(db, saleId, { ...query, buyerId });
  // Checked even if there are orders, because the sale may be in deletion.
  if (!record && !(await isSale(db, saleId))) return undefined;
  const onPage = new Set(page.orders.map(({ orderId }) => orderId));
  const missing = (record?.orders ?? []).filter(
    ({ seq, orderId }) => seq > record!.committed && !onPage.has(orderId),
  );
  // Those that have been committed since the record was read come on a later page.
  const later = page.next === undefined ? [] : await committedOf(db, missing);
  const accepted = missing
    .filter(({ orderId }) => !later.includes(orderId))
    .map(({ orderId, quantity }) => ({ orderId, saleId, quantity }));
  return { ...page, accepted };
}

/** Those of the orders that are in Postgres. */
async function committedOf(db: Database, orders: readonly HeldOrder[]): Promise<readonly string[]> {
  if (orders.length === 0) return [];
  const found = await rows<{ order_id: string }>(
    db,
    'SELECT order_id FROM orders WHERE order_id = ANY(?::bigint[])',
    [orders.map(({ orderId }) => orderId)],
  );
  return found.map(({ order_id }) => order_id);
}

async function isSale(db: Database, saleId: string): Promise<boolean> {
  return (await rows(db, 'SELECT 1 FROM sales WHERE id = ? AND deleting_since IS NULL', [saleId])).length > 0;
}

/** The place where a page ended: in this sale, after this order. The order id `0` is after all orders of the sale. */
interface Place {
  readonly createdUs: string;
  readonly orderId: string;
  readonly saleId: string;
}

const PLACE = /^(\d{1,16})\.(\d{1,19})\.(.+)$/;

/** Whether the text can be `next` of a page of `readOwnOrders`. */
export function isPlace(text: string): boolean {
  const [, , orderId, saleId] = PLACE.exec(text) ?? [];
  return orderId !== undefined && isOrderId(orderId) && SALE_ID_PATTERN.test(saleId!);
}

/** The place before all sales. */
const START: Place = { createdUs: '9999999999999999', orderId: '0', saleId: '' };
const CREATED_US = '(extract(epoch FROM created_at) * 1000000)::bigint';

/**
 * The buyer's orders in all sales: the newest sales first, and in each the newest orders first.
 * @param query its `after` must satisfy `isPlace`
 */
export async function readOwnOrders(
  db: Database,
  buyerId: string,
  { after, limit = DEFAULT_PAGE_ORDERS }: OwnQuery,
): Promise<OrderPage> {
  const place = after === undefined ? START : placeOf(after);
  const sales = `SELECT id, created_at FROM sales
    WHERE created_at <= to_timestamp(0) + ? * interval '1 microsecond'
      AND (created_at < to_timestamp(0) + ? * interval '1 microsecond' OR id >= ?) AND deleting_since IS NULL
    ORDER BY created_at DESC, id LIMIT ${PROBED_SALES + 1}`;
  const from = [place.createdUs, place.createdUs, place.saleId];
  // One statement: if a sale was made or deleted between two, the next page would begin one sale too early or too late.
  const found = await rows<(OrderRow | { order_id: null }) & OwnRow>(
    db,
    `SELECT f.*, e.end_id, e.end_us FROM (SELECT) AS one
     LEFT JOIN (
       SELECT id AS end_id, ${CREATED_US} AS end_us FROM (${sales}) s OFFSET ${PROBED_SALES}
     ) e ON true
     LEFT JOIN (
       SELECT o.*, ${CREATED_US} AS created_us FROM (${sales}) s
       CROSS JOIN LATERAL (${ofBuyer('sale_id = s.id AND buyer_id = ?')}) o
       WHERE s.id <> ? OR o.order_id < ?::bigint
       ORDER BY s.created_at DESC, s.id, o.order_id DESC LIMIT ?
     ) f ON true
     ORDER BY f.created_us DESC, f.sale_id, f.order_id DESC`,
    [...from, ...from, buyerId, buyerId, buyerId, place.saleId, place.orderId, limit + 1],
  );
  const lines = found.filter((row) => row.order_id !== null);
  const orders: Order[] = lines.map(orderOf);
  if (lines.length > limit) {
    const last = lines[limit - 1]!;
    return { orders: orders.slice(0, limit), next: nextOf(last.created_us, last.order_id, last.sale_id) };
  }
  const { end_id: endId, end_us: endUs } = found[0]!;
  return endId === null ? { orders } : { orders, next: nextOf(endUs, '0', endId) };
}

interface OwnRow {
  /** When its sale was made. */
  readonly created_us: string;
  /** The last of the sales that were searched, if there may be more. */
  readonly end_id: string | null;
  readonly end_us: string;
}

function placeOf(text: string): Place {
  const [, createdUs, orderId, saleId] = PLACE.exec(text)!;
  return { createdUs: createdUs!, orderId: orderId!, saleId: saleId! };
}

const nextOf = (createdUs: string, orderId: string, saleId: string) => `${createdUs}.${orderId}.${saleId}`;
