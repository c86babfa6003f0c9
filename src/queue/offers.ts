/**
 * Offers: an offer is an order that Stockade has made for a place, and that its buyer has not accepted yet. So units are held for
 * it exactly as for any order that is not paid.
 *
 *   waiting ──take with the key of the place──> in the log ──sync──> offered ──accepted──> bought: an order like any other
 *                                                  │                    ├──time is over──> lapsed: its units come back
 *                                                  │                    └──given back──> left: its units come back
 *                                                  └──the place waits no longer──> rejected: its units come back
 *
 * The key names the place. A head that repeats a take finds the same order, so a place never gets two. Only the commit makes the
 * place `offered`, in one transaction with the order (migrations/025-many-sales.sql).
 */
import type { Purchase } from '../engine/contract.ts';
import { OFFER_PREFIX } from '../engine/limits.ts';
import { encodeNote } from '../engine/sale/order-note.ts';
import type { Order } from '../operations/order-operations.ts';
import { type OrderRow, orderOf } from '../orders/order-reader.ts';
import { IN_TIME } from '../postgres/changes/in-time.ts';
import { rowsInTime } from '../postgres/changes/rows-in-time.ts';
import type { Database } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';
import type { Place } from './place.ts';

/** The purchase that makes the offer. @param quantity units that are offered, at most those that the place wants */
export function offerTo({ saleId, buyerId, number }: Place, quantity: number): Purchase {
  return {
    ...{ saleId, buyerId, quantity },
    key: `${OFFER_PREFIX}${number}`,
    note: encodeNote({ place: number }),
    awaitCommit: true,
    onBehalf: true,
  };
}

export interface Acceptance {
  readonly orderId: string;
  readonly buyerId: string;
  /** Must be the quantity of the offer. */
  readonly quantity: number;
  readonly reference?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export interface Accepted {
  /**
   * done: the order is the buyer's, also if it was accepted before. late: the offer has ended, or its order has. quantity: it is
   * for another number of units. paused: the sale is. forbidden: it is another buyer's.
   */
  readonly verdict: 'done' | 'late' | 'quantity' | 'paused' | 'forbidden';
  readonly order: Order;
}

/**
 * @param latestMs as for `rowsInTime`
 * @returns `undefined` if there is no such order. @throws as `rowsInTime`; then the offer may have been accepted
 */
export async function acceptOffer(
  db: Database,
  wish: Acceptance,
  latestMs?: number,
): Promise<Accepted | undefined> {
  const { orderId, buyerId, quantity, reference, metadata } = wish;
  const [row] = await despiteDeadlocks(() =>
    rowsInTime<OrderRow & { verdict: Accepted['verdict'] }>(db, latestMs, {
      sql: `SELECT ${IN_TIME}, verdict, (stands).* FROM stockade_accept_offer(?, ?, ?, ?, ?::jsonb)`,
      bindings: (latest) => [
        latest,
        orderId,
        buyerId,
        quantity,
        reference ?? null,
        metadata === undefined ? null : JSON.stringify(metadata),
      ],
    }),
  );
  return row?.order_id ? { verdict: row.verdict, order: orderOf(row) } : undefined;
}
