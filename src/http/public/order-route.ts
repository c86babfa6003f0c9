/** `GET /v1/orders/{orderId}`: an order, for its owner. */

import { isOrderId } from '../../engine/order-id.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Order } from '../../operations/order-operations.ts';
import { mayBeInLog } from '../../orders/log-age.ts';
import { type Authenticate, refusal } from '../identity/identity.ts';
import { forBuyer } from '../orders/order-reply.ts';
import type { Handler, Observer } from '../server/exchange.ts';
import { failure } from '../server/failure.ts';
import { pathIdOf } from '../server/http-request.ts';
import { problem } from '../server/replies/problem.ts';
import { json, type Reply } from '../server/replies/reply.ts';

export interface OrderHost extends Observer {
  readonly authenticate: Authenticate;
  /** Reads Postgres. @throws Busy */
  readOrder(orderId: string): Promise<Order | undefined>;
  /** Reads the buyer's records for an order that is accepted and not in Postgres yet. @throws Busy */
  findAccepted(buyerId: string, orderId: string): Promise<{ saleId: string; quantity: number } | undefined>;
  readonly readDeadlineMs: number;
}

const UNREAD = {
  busy: problem('busy', { detail: 'The order was not read. Send the request again.' }),
  failed: problem('unavailable', { detail: 'The order can’t be read now. Send the request again.' }),
};

export function orderRoute(host: OrderHost): Handler {
  return async (exchange, request) => {
    const orderId = pathIdOf(request);
    const identity = await host.authenticate(request);
    if (!('buyerId' in identity)) return exchange.reply(refusal(identity).reply);
    if (!isOrderId(orderId)) return exchange.reply(problem('unknown_order'));
    try {
      exchange.reply(await withTimeout(host.readDeadlineMs, orderFor(host, identity.buyerId, orderId)));
    } catch (error) {
      exchange.reply(failure(host, error, UNREAD));
    }
  };
}

async function orderFor(host: OrderHost, buyerId: string, orderId: string): Promise<Reply> {
  const { saved: order, accepted } = await lookUp(host, { buyerId, orderId }, () => host.readOrder(orderId));
  if (order) return order.buyerId === buyerId ? json(200, forBuyer(order)) : problem('forbidden');
  return accepted ? json(200, { orderId, ...accepted, status: 'accepted' }) : problem('unknown_order');
}

interface LookedUp<Saved> {
  readonly saved?: Saved | undefined;
  readonly accepted?: { readonly saleId: string; readonly quantity: number };
}

/**
 * Looks for an order in Postgres, then in its buyer's record, then in Postgres again. Between the first two reads the order
 * may have been committed, cancelled by another request and removed from the record. An order leaves the record only after
 * Postgres has it, so the third read finds it.
 * @param readPostgres `undefined` if Postgres does not have the order
 */
export async function lookUp<Saved>(
  { findAccepted }: Pick<OrderHost, 'findAccepted'>,
  { buyerId, orderId }: { readonly buyerId: string; readonly orderId: string },
  readPostgres: () => Promise<Saved | undefined>,
): Promise<LookedUp<Saved>> {
  const saved = await readPostgres();
  if (saved !== undefined || !mayBeInLog(orderId)) return { saved };
  const accepted = await findAccepted(buyerId, orderId);
  return accepted ? { accepted } : { saved: await readPostgres() };
}
