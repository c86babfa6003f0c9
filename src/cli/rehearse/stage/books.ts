/** Compares what the crowd was told with the orders in Postgres, order by order. */

import { MAX_PAGE_ORDERS } from '../../../operations/order-list.ts';
import type { OrderOperations } from '../../../operations/order-operations.ts';
import type { CrowdResult } from '../crowd/protocol.ts';

export interface StoredOrder {
  readonly orderId: string;
  readonly buyerId: string;
}

export interface Books {
  /** Orders in Postgres. */
  readonly stored: number;
  /** Orders that answers named, 201 or 202. */
  readonly told: number;
  /** Ids of orders answered 201 or 202 that are not in Postgres, or belong to another buyer there. */
  readonly lost: readonly string[];
  /** Buyers with more orders than one. */
  readonly doubled: readonly string[];
  /** Ids of orders that no answer named, although every request of their buyer got a definite answer. */
  readonly untold: readonly string[];
  /** Buyers without an order that were answered `limit_reached`. */
  readonly refused: readonly string[];
}

export async function storedOrders(
  orders: Pick<OrderOperations, 'listOrders'>,
  saleId: string,
): Promise<StoredOrder[]> {
  const found: StoredOrder[] = [];
  for (let after: string | undefined; ; ) {
    const page = await orders.listOrders(saleId, {
      order: 'oldest',
      limit: MAX_PAGE_ORDERS,
      ...(after !== undefined && { after }),
    });
    for (const { orderId, buyerId } of page.orders) found.push({ orderId, buyerId });
    if (page.next === undefined) return found;
    after = page.next;
  }
}

export function compareBooks(
  stored: readonly StoredOrder[],
  crowd: Pick<CrowdResult, 'told' | 'unanswered' | 'limited'>,
): Books {
  const buyerOf = new Map(stored.map(({ orderId, buyerId }) => [orderId, buyerId]));
  const told = new Map(crowd.told.map(({ orderId, buyerId }) => [orderId, buyerId]));
  const unanswered = new Set(crowd.unanswered);
  const times = new Map<string, number>();
  for (const { buyerId } of stored) times.set(buyerId, (times.get(buyerId) ?? 0) + 1);
  return {
    stored: stored.length,
    told: told.size,
    lost: [...told].flatMap(([orderId, buyerId]) => (buyerOf.get(orderId) === buyerId ? [] : [orderId])),
    doubled: [...times].flatMap(([buyerId, orders]) => (orders > 1 ? [buyerId] : [])),
    untold: stored.flatMap(({ orderId, buyerId }) =>
      told.has(orderId) || unanswered.has(buyerId) ? [] : [orderId],
    ),
    refused: crowd.limited.filter((buyerId) => !times.has(buyerId)),
  };
}
