/**
 * Brings Stockade and the provider into line about one payment. Webhooks, the sweep and operators' refunds all end here.
 *
 *   paid at the provider ──report──> counted for the order, or for the order that replaces it
 *     │                               └──paid back at the provider──> the order is refunded
 *     ├──expired, nothing left──────> pay back ──done──> the order is refunded
 *     ├──another payment counts─────> pay back
 *     ├──cancelled──────────────────> pay back
 *     └──no certain answer──────────> an error: the caller repeats
 *
 * The shop stores nothing. The report's `reason` is the payment's id, and Stockade keeps the reason of the first report only.
 * So the order itself says which payment counts, and every other one is a second payment.
 *
 * Each step is safe to repeat, at the same time too: Stockade changes an order once, and the provider's idempotency keys make
 * one refund of many. If the process dies anywhere, the next call goes on.
 */

/** An order in one of these can't be paid any more, or was paid in another way. */
const NOT_TO_BE_PAID = ['cancelled', 'rejected', 'expired', 'refunded', 'paid', 'redeemed'];

/**
 * @typedef {{ ops: import('@stockade-engine/stockade/client').OperatorClient, provider: import('./provider.js').Provider }} Parties
 * @param {Parties} parties
 * @param {string} intentId a payment intent, in any state
 * @returns {Promise<'not ours' | 'not paid' | 'counted' | 'counted late' | 'refunding' | 'refunded'>}
 * @throws if a party gave no certain answer
 */
export async function settle({ ops, provider }, intentId) {
  const intent = await provider.intent(intentId);
  const orderId = intent.metadata?.stockade_order;
  if (!orderId) return 'not ours';
  if (intent.status !== 'succeeded') return 'not paid';

  const report = await ops.pay(orderId, 'card', intent.id);
  if (report.code === 'wrong_status' && NOT_TO_BE_PAID.includes(report.orderStatus))
    return payBack(provider, intent);
  if (report.code !== 'done' && report.code !== 'expired') throw uncertain(`pay ${orderId}`, report);
  if ((await paymentOf(ops, orderId)) !== intent.id) return payBack(provider, intent);
  return report.code === 'expired'
    ? settleRefundDue({ ops, provider }, intent, orderId, report.refundDue)
    : settleCounted({ ops, provider }, intent, orderId, report.order);
}

async function settleRefundDue({ ops, provider }, intent, orderId, isDue) {
  // An operator may have noted that the money went back in another way. Then it must not go back twice.
  if (!isDue) return 'refunded';
  const progress = await payBack(provider, intent);
  if (progress === 'refunded') await noteRefund(ops, orderId, intent);
  return progress;
}

/** @param counted the order that is paid: the one that the payment names, or the one that replaces it */
async function settleCounted({ ops, provider }, intent, orderId, counted) {
  if (counted.refundedAt !== undefined) return 'refunded';
  if (!(await isBack(provider, intent))) return counted.orderId === orderId ? 'counted' : 'counted late';
  // What was handed out is not for sale again, although the money is back.
  if (counted.status !== 'redeemed') await noteRefund(ops, counted.orderId, intent);
  return 'refunded';
}

async function noteRefund(ops, orderId, intent) {
  const refund = await ops.refund(orderId, `${intent.id} was paid back`);
  if (refund.code !== 'done') throw uncertain(`refund ${orderId}`, refund);
}

/** Finishes what was left undone when the process died: pays back what Stockade lists as due. @returns the failures */
export async function sweep(parties) {
  const due = await parties.ops.refundsDue();
  if (due.code !== 'found') throw uncertain('refunds due', due);
  const failures = [];
  for (const { orderId } of due.orders) {
    try {
      await settle(parties, await paymentOf(parties.ops, orderId));
    } catch (error) {
      failures.push(new Error(`The refund of order ${orderId} is still due`, { cause: error }));
    }
  }
  return failures;
}

/** Pays a paid order back. Its units are for sale again once the provider says that the money went back. */
export async function refundOrder(parties, orderId) {
  const { order } = await read(parties.ops, orderId);
  if (order.status !== 'paid' && order.status !== 'refunded')
    throw new Error(`Order ${orderId} is ${order.status}: only a paid order can be paid back`);
  const intentId = await paymentOf(parties.ops, orderId);
  await payBack(parties.provider, await parties.provider.intent(intentId));
  return settle(parties, intentId);
}

/** The payment that counts for an order: the reason that its first report gave. */
async function paymentOf(ops, orderId) {
  const { order } = await read(ops, orderId);
  return order.changes?.find(({ change }) => change === 'pay')?.reason;
}

async function read(ops, orderId) {
  const found = await ops.order(orderId);
  if (found.code !== 'done') throw uncertain(`order ${orderId}`, found);
  return found;
}

/** Pays back what was not paid back yet. */
async function payBack(provider, intent) {
  const { underWay, hasFailed } = await provider.paidBack(intent);
  if (underWay < intent.amount_received) {
    if (hasFailed)
      throw new Error(
        `A refund of ${intent.id} has failed or was canceled: pay the buyer back in another way`,
      );
    await provider.refund(intent);
  }
  return (await isBack(provider, intent)) ? 'refunded' : 'refunding';
}

/** Whether all of the money is back, as the provider says. */
async function isBack(provider, intent) {
  const { done } = await provider.paidBack(intent);
  return done >= intent.amount_received;
}

function uncertain(what, { code, title, detail }) {
  return new Error(`${what}: Stockade answered ${code}: ${detail ?? title}`);
}
