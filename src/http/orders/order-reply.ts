/** The HTTP answers to reading an order and to changing it. */
import type { Order, OrderOutcome } from '../../operations/order-operations.ts';
import { problem } from '../server/replies/problem.ts';
import { json, type Reply } from '../server/replies/reply.ts';

const RETRY_LATER = { 'retry-after': '1' };
const NOTHING_DONE = { detail: 'Nothing was changed. Send the request again.' };

/** The outcome of the change is unknown. Repeating the request does no harm. */
export const MAY_BE_DONE = problem('unknown', {
  detail: 'Send the request again: it does not take effect twice.',
});

const PAUSED =
  'The order had expired before it was paid. Its units can be taken again once the sale is resumed: report the payment again then.';

const NOT_ARRIVED = problem('unavailable', {
  detail:
    'It is not known yet whether there is such an order. It is not in Postgres. It may still come, because some entries of the order logs are not in Postgres yet. Nothing was changed. Send the request again.',
});

/** @param show picks the fields of an order that the client may see */
export function orderReply(outcome: OrderOutcome, show: (order: Order) => object = (order) => order): Reply {
  switch (outcome.code) {
    case 'done': {
      const { order, replaces } = outcome;
      return json(200, { ...show(order), ...(replaces !== undefined && { retaken: true, replaces }) });
    }
    case 'unknown_order':
    case 'forbidden':
      return problem(outcome.code);
    case 'wrong_status': {
      const { orderStatus } = outcome;
      return problem('wrong_status', { orderStatus }, orderStatus === 'accepted' ? RETRY_LATER : {});
    }
    case 'wrong_state':
      return problem('wrong_state', { state: outcome.state, detail: PAUSED });
    case 'not_arrived':
      return NOT_ARRIVED;
    case 'expired':
      return problem('expired', { refundDue: outcome.refundDue });
    case 'busy':
    case 'unavailable':
      return problem(outcome.code, NOTHING_DONE);
    case 'unknown':
      return MAY_BE_DONE;
  }
}

/** The fields of an order that its buyer may see. They are listed one by one, so that a new field stays hidden. */
export function forBuyer(order: Order): object {
  const { orderId, saleId, quantity, status, payType, refundDue, retakenBy } = order;
  const { committedAt, expiresAt, paidAt, redeemedAt, refundedAt, cancelledAt, expiredAt } = order;
  const times = { committedAt, expiresAt, paidAt, redeemedAt, refundedAt, cancelledAt, expiredAt };
  return { orderId, saleId, quantity, status, payType, ...times, refundDue, retakenBy };
}
