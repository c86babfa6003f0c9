/** Reads what Postgres holds of a sale, and compares it with the answers that buyers got. */
import pg from 'pg';
import { expect } from 'vitest';
import type { Outcome } from '../../../src/engine/contract.ts';

const LIVE = new Set(['unpaid', 'paid', 'redeemed']);

export interface TrueOrder {
  readonly orderId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly status: string;
  readonly key: string;
}

/** All orders of a sale by their ids, rejected ones too. */
export async function ordersOf(databaseUrl: string, saleId: string): Promise<Map<string, TrueOrder>> {
  const rows = await query<TrueOrder>(
    databaseUrl,
    `SELECT order_id::text AS "orderId", buyer_id AS "buyerId", quantity, status,
       coalesce(idempotency_key, '') AS key
     FROM orders WHERE sale_id = $1 ORDER BY order_id`,
    [saleId],
  );
  return new Map(rows.map((order) => [order.orderId, order]));
}

/** Runs one statement on a connection of its own. */
export async function query<T>(
  databaseUrl: string,
  sql: string,
  values: readonly unknown[] = [],
): Promise<T[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql, [...values])).rows as T[];
  } finally {
    await client.end();
  }
}

/** An answer that promises an order: 201 or 202. */
export interface Promised {
  readonly orderId: string;
  readonly buyerId: string;
  readonly quantity: number;
}

/** The promises among the outcomes. `buyerIds` has the buyers in the same order. */
export function promisesOf(outcomes: readonly Outcome[], buyerIds: readonly string[]): Promised[] {
  return outcomes.flatMap((outcome, i) =>
    outcome.code === 'committed' || outcome.code === 'accepted'
      ? { orderId: outcome.orderId, quantity: outcome.quantity, buyerId: buyerIds[i]! }
      : [],
  );
}

/** Expects that every promise is an order in Postgres, of that buyer and quantity, and not rejected. */
export function expectKept(promises: readonly Promised[], orders: ReadonlyMap<string, TrueOrder>): void {
  const broken = promises.filter(({ orderId, buyerId, quantity }) => {
    const order = orders.get(orderId);
    return !(order && LIVE.has(order.status) && order.buyerId === buyerId && order.quantity === quantity);
  });
  expect(broken, 'promises that Postgres does not keep').toEqual([]);
}

/** Units sold, by buyer. */
export function soldTo(orders: ReadonlyMap<string, TrueOrder>): Map<string, number> {
  const units = new Map<string, number>();
  for (const { buyerId, quantity, status } of orders.values()) {
    if (LIVE.has(status)) units.set(buyerId, (units.get(buyerId) ?? 0) + quantity);
  }
  return units;
}

export function unitsSold(orders: ReadonlyMap<string, TrueOrder>): number {
  return [...soldTo(orders).values()].reduce((sum, units) => sum + units, 0);
}

export function expectWithinLimit(orders: ReadonlyMap<string, TrueOrder>, limit: number): void {
  const above = [...soldTo(orders)].filter(([, units]) => units > limit);
  expect(above, `buyers above ${limit}`).toEqual([]);
}
