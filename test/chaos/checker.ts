/**
 * Compares all answers of a round with what Postgres holds when everything is over.
 *
 * An order answered `201` must be there. One answered `202` may be lost by a fault in which Redis itself loses writes; then
 * it must be reported: named in `lost_orders`, or rejected. After a refusal there must be no order, also if the purchase was
 * unknown first and settled as refused later. No buyer may have an order that it did not ask for.
 */
import pg from 'pg';
import type { History, Purchase } from './history.ts';
import { SALE } from './world.ts';

const LIVE = new Set(['unpaid', 'paid', 'redeemed']);

export interface Verdict {
  readonly sold: number;
  readonly oversold: number;
  /** Units left although the last customers were answered "sold out". */
  readonly unsold: number;
  /** Orders that were answered `201` and are not in Postgres. */
  readonly lostCommitted: number;
  /** Orders that were answered `202` and are not in Postgres. */
  readonly lostAccepted: number;
  /** Those of the lost accepted orders that no report names. */
  readonly unreported: number;
  /** A lower bound of the orders that the sale itself counts as lost. */
  readonly countedLost: number;
  /** Buyers with more units than the sale allows. */
  readonly limitBroken: number;
  /** Purchases that are still unknown to their customers, or were answered wrongly. */
  readonly unsettled: number;
  /** Purchases that were refused in every attempt and nevertheless have an order. */
  readonly falseRefusals: number;
  /** Orders that no customer asked for. */
  readonly invented: number;
  /** Keys that were answered with two different orders. */
  readonly changed: number;
  /** Orders that Postgres rejected. */
  readonly rejected: number;
}

export interface Order {
  readonly orderId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly status: string;
  readonly key: string;
}

/** A sale's data in Postgres. */
export interface Truth {
  readonly orders: readonly Order[];
  /** Ids of the orders that are reported as lost by name. */
  readonly named: ReadonlySet<string>;
  /** A lower bound of the orders that are counted as lost. */
  readonly countedLost: number;
}

export interface JudgedSale {
  readonly stock: number;
  readonly limit: number;
  /** Whether the customers were answered "sold out". */
  readonly soldOut: boolean;
}

export function judge(history: History, { orders, named, countedLost }: Truth, sale: JudgedSale): Verdict {
  const live = orders.filter(({ status }) => LIVE.has(status));
  const byId = new Map(orders.map((order) => [order.orderId, order]));
  const byKey = new Set(live.map(({ key }) => key));
  const isKept = ({ buyerId, quantity, answer }: Purchase) => {
    const order = answer.kind === 'ok' ? byId.get(answer.orderId) : undefined;
    return order && LIVE.has(order.status) && order.buyerId === buyerId && order.quantity === quantity;
  };
  const isReported = ({ answer }: Purchase) =>
    answer.kind === 'ok' && (named.has(answer.orderId) || byId.get(answer.orderId)?.status === 'rejected');
  const lost = (status: number) =>
    history.purchases.filter(
      (purchase) => purchase.answer.kind === 'ok' && purchase.answer.status === status && !isKept(purchase),
    );
  const lostAccepted = lost(202);
  const refused = history.purchases.filter(({ answer }) => answer.kind === 'refused');
  const refusedWithOrder = refused.filter(({ key }) => byKey.has(key));
  const asked = new Set(history.purchases.map(({ key }) => key));
  const sold = unitsOf(live);
  return {
    sold,
    oversold: Math.max(0, sold - sale.stock),
    unsold: sale.soldOut ? Math.max(0, sale.stock - sold) : 0,
    lostCommitted: lost(201).length,
    lostAccepted: lostAccepted.length,
    unreported: lostAccepted.filter((purchase) => !isReported(purchase)).length,
    countedLost,
    limitBroken: [...perBuyer(live).values()].filter((units) => units > sale.limit).length,
    unsettled: history.open.length + refusedWithOrder.filter(({ unknowns }) => unknowns > 0).length,
    falseRefusals: refusedWithOrder.filter(({ unknowns }) => unknowns === 0).length,
    invented: live.filter(({ key }) => !asked.has(key)).length,
    changed: history.changed.length,
    rejected: orders.filter(({ status }) => status === 'rejected').length,
  };
}

function unitsOf(orders: readonly Order[]): number {
  return orders.reduce((sum, { quantity }) => sum + quantity, 0);
}

function perBuyer(orders: readonly Order[]): Map<string, number> {
  const units = new Map<string, number>();
  for (const { buyerId, quantity } of orders) units.set(buyerId, (units.get(buyerId) ?? 0) + quantity);
  return units;
}

export async function readTruth(databaseUrl: string): Promise<Truth> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const orders = await client.query<Order>(
      `SELECT order_id::text AS "orderId", buyer_id AS "buyerId", quantity, status,
         coalesce(idempotency_key, '') AS key FROM orders WHERE sale_id = $1`,
      [SALE],
    );
    const lost = await client.query<{ id: string }>(
      'SELECT order_id::text AS id FROM lost_orders WHERE sale_id = $1',
      [SALE],
    );
    const counted = await client.query<{ orders: string }>(
      'SELECT coalesce(sum(orders), 0) AS orders FROM sale_losses WHERE sale_id = $1',
      [SALE],
    );
    const named = new Set(lost.rows.map(({ id }) => id));
    return { orders: orders.rows, named, countedLost: Number(counted.rows[0]!.orders) };
  } finally {
    await client.end();
  }
}
