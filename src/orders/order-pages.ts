/**
 * Pages of a sale's orders, in the order of their ids. Each is one statement, whose cost depends on the page or on the
 * orders of one buyer in the sale, and never on the length of the history:
 *
 * | filter | what is read |
 * |---|---|
 * | none, or time | the page, from orders_of_sale |
 * | buyer | the buyer's orders in this sale, from the three partial indexes that together have all of them |
 * | reference | the page, from orders_by_reference |
 * | reference and statuses | at most SCANNED_ORDERS orders with the reference, from orders_by_reference |
 * | statuses of ended orders | at most SCANNED_ORDERS ended orders, from orders_ended |
 * | other statuses | at most SCANNED_ORDERS orders, from orders_of_sale |
 *
 * A page that ends at SCANNED_ORDERS holds what was found until there, and says where the next one begins. An index on
 * the status of live orders would find them at once, but every commit and every payment would have to write into it.
 */
import type { Knex } from 'knex';
import { firstIdAt } from '../engine/order-id.ts';
import { DEFAULT_PAGE_ORDERS, type OrderPage, type OrderQuery } from '../operations/order-list.ts';
import type { OrderStatus } from '../operations/order-operations.ts';
import { type Database, rows } from '../postgres/database.ts';
import { ENDED, ofBuyer } from '../postgres/live-orders.ts';
import { type OrderRow, orderOf } from './order-reader.ts';

/** Orders that are read for one page in search of a status. */
const SCANNED_ORDERS = 20_000;

const ENDED_STATUSES: readonly OrderStatus[] = ['cancelled', 'expired', 'refunded', 'rejected'];

/** A piece of SQL with the values of its places. */
interface Sql {
  readonly text: string;
  readonly values: readonly Knex.RawBinding[];
}

/** @returns an empty page for a sale that does not exist */
export async function readOrderPage(db: Database, saleId: string, query: OrderQuery): Promise<OrderPage> {
  const { limit = DEFAULT_PAGE_ORDERS } = query;
  const page = pageSql(saleId, query, limit + 1);
  const found = await rows<OrderRow & { edge?: string | null }>(db, page.text, page.values);
  const orders = found.filter((row) => row.order_id !== null).map(orderOf);
  if (orders.length > limit) return { orders: orders.slice(0, limit), next: orders[limit - 1]!.orderId };
  return { orders, next: found[0]?.edge ?? undefined };
}

/** Whether an order is missing in a sale, and a sale with the same id was deleted. An order leaves Postgres in no other way. */
export async function isOfFormerSale(db: Database, saleId: string, orderId: string): Promise<boolean> {
  const found = await rows(
    db,
    `SELECT 1 FROM deleted_sales WHERE id = ?
       AND NOT EXISTS (SELECT 1 FROM orders WHERE order_id = ?::bigint AND sale_id = ?) LIMIT 1`,
    [saleId, orderId, saleId],
  );
  return found.length > 0;
}

/** An offer is an unpaid order in the table. */
function conditionOf(status: OrderStatus): string {
  if (status === 'offered') return "(status = 'unpaid' AND offer_of IS NOT NULL)";
  if (status === 'unpaid') return "(status = 'unpaid' AND offer_of IS NULL)";
  return `status = '${status}'`;
}

interface PageTerms {
  readonly saleId: string;
  /** The page's ids are above this one and below the other. */
  readonly above: string;
  readonly below: string;
  readonly direction: 'ASC' | 'DESC';
  readonly status: readonly OrderStatus[] | undefined;
  /** The condition of `status`. */
  readonly wanted: string;
  readonly most: number;
}

function pageSql(saleId: string, query: OrderQuery, most: number): Sql {
  const { buyerId, reference, status } = query;
  const direction = query.order === 'oldest' ? 'ASC' : 'DESC';
  const [above, below] = rangeOf(query);
  const wanted = status === undefined ? 'true' : `(${status.map(conditionOf).join(' OR ')})`;
  const terms = { saleId, above, below, direction, status, wanted, most } as const;
  if (buyerId !== undefined) return buyerSql(terms, buyerId, reference);
  return reference === undefined ? saleSql(terms) : referenceSql(terms, reference);
}

function buyerSql(terms: PageTerms, buyerId: string, reference: string | undefined): Sql {
  const { saleId, above, below, direction, wanted, most } = terms;
  const buyer = [saleId, buyerId];
  return {
    // An expression on the reference, so that no plan reads the orders of other buyers from its index.
    text: `SELECT * FROM (${ofBuyer('sale_id = ? AND buyer_id = ?')}) o
      WHERE order_id > ?::bigint AND order_id < ?::bigint AND ${wanted}
        ${reference === undefined ? '' : "AND coalesce(reference, '') = ?"}
      ORDER BY order_id ${direction} LIMIT ${most}`,
    values: [...buyer, ...buyer, ...buyer, above, below, ...(reference === undefined ? [] : [reference])],
  };
}

function referenceSql(terms: PageTerms, reference: string): Sql {
  const { saleId, above, below, direction, status, wanted, most } = terms;
  // Pairs, so that no plan can walk through the sale by its ids until it has found enough matches.
  const matching = `FROM orders WHERE sale_id = ? AND reference IS NOT NULL
    AND (reference COLLATE "C", order_id) > (?, ?::bigint) AND (reference COLLATE "C", order_id) < (?, ?::bigint)
    ORDER BY reference COLLATE "C" ${direction}, order_id ${direction}`;
  const values = [saleId, reference, above, reference, below];
  if (status === undefined) return { text: `SELECT * ${matching} LIMIT ${most}`, values };
  const last = direction === 'ASC' ? 'max' : 'min';
  return {
    // Materialized, so that the statuses don't lead a plan to another index.
    text: `WITH scanned AS MATERIALIZED (SELECT * ${matching} LIMIT ${SCANNED_ORDERS})
      SELECT o.*, edge FROM
        (SELECT CASE WHEN count(*) = ${SCANNED_ORDERS} THEN ${last}(order_id) END AS edge FROM scanned) AS one
        LEFT JOIN (SELECT * FROM scanned WHERE ${wanted} ORDER BY order_id ${direction} LIMIT ${most}) o ON true
      ORDER BY o.order_id ${direction}`,
    values,
  };
}

function saleSql({ saleId, above, below, direction, status, wanted, most }: PageTerms): Sql {
  // Pairs, so that no plan can walk through the orders of all sales by their ids.
  const isEnded = status?.every((one) => ENDED_STATUSES.includes(one));
  const range = `FROM orders WHERE (sale_id, order_id) > (?, ?::bigint) AND (sale_id, order_id) < (?, ?::bigint)
    ${isEnded ? `AND status IN ${ENDED}` : ''}`;
  const sorted = `ORDER BY sale_id ${direction}, order_id ${direction}`;
  const values = [saleId, above, saleId, below];
  if (status === undefined) return { text: `SELECT * ${range} ${sorted} LIMIT ${most}`, values };
  const [towards, end] = direction === 'ASC' ? ['<=', below] : ['>=', above];
  return {
    text: `WITH scanned AS (SELECT order_id ${range} ${sorted} OFFSET ${SCANNED_ORDERS - 1} LIMIT 1)
      SELECT o.*, (SELECT order_id FROM scanned) AS edge FROM (SELECT) AS one LEFT JOIN (
        SELECT * ${range} AND ${wanted}
          AND (sale_id, order_id) ${towards} (?, coalesce((SELECT order_id FROM scanned), ?::bigint))
        ${sorted} LIMIT ${most}
      ) o ON true ORDER BY o.order_id ${direction}`,
    values: [...values, ...values, saleId, end],
  };
}

const MAX_ID = 2n ** 63n - 1n;

/** The range of ids that the query covers, without the two bounds. */
function rangeOf({ after, since, until, order }: OrderQuery): [above: string, below: string] {
  let above = since === undefined ? -1n : BigInt(firstIdAt(since)) - 1n;
  let below = until === undefined ? MAX_ID : BigInt(firstIdAt(until));
  const cursor = after === undefined ? undefined : BigInt(after);
  if (cursor !== undefined && order === 'oldest' && cursor > above) above = cursor;
  if (cursor !== undefined && order !== 'oldest' && cursor < below) below = cursor;
  return [String(above), String(below)];
}
