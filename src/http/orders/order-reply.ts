/** How the outcome of a change of an order, or of a question for it, is told over HTTP. */
import type { Order, OrderOutcome } from '../../operations/order-operations.ts';
import { json, problem, type Reply } from '../server/problem.ts';

const RETRY_LATER = { 'retry-after': '1' };
const NOT_DECIDED = { detail: 'Nothing was decided. Ask again.' };

/** For somebody who may not have heard how the same request has ended: to repeat it does no harm. */
export const MAY_BE_DONE = problem('unknown', {
  title: 'It is not known yet whether this was done',
  detail: 'Ask again: what was done is not done twice.',
});

const PAUSED =
  'The order had expired before it was paid. Its units can be taken anew once the sale is resumed: report the payment again then.';

const NOT_ARRIVED = problem('unavailable', {
  title: 'It is not known yet whether there is such an order',
  detail:
    'It is not in Postgres, and the order logs are not carried over yet: it may still come. Nothing was done. Ask again.',
});

/** @param show what of an order its reader is told */
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
      return problem(outcome.code, NOT_DECIDED);
    case 'unknown':
      return MAY_BE_DONE;
  }
}

/** The order as its buyer is shown it: what is named here, and nothing that an order may have one day. */
export function forBuyer(order: Order): object {
  const { orderId, saleId, quantity, status, payType, refundDue, retakenBy } = order;
  const { committedAt, expiresAt, paidAt, redeemedAt, refundedAt, cancelledAt, expiredAt } = order;
  const times = { committedAt, expiresAt, paidAt, redeemedAt, refundedAt, cancelledAt, expiredAt };
  return { orderId, saleId, quantity, status, payType, ...times, refundDue, retakenBy };
}
