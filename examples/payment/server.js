/**
 * The shop's own server between its buyers, the payment provider and Stockade's ops port. Only this server has the token of the
 * ops port and the key of the provider.
 *
 *   POST /orders/{id}/payment  the buyer begins to pay
 *   GET  /orders/{id}/payment  the buyer asks what became of it
 *   POST /provider/events      the provider's webhook
 */
import { createServer } from 'node:http';
import { settle } from './settle.js';
import { isSigned } from './signature.js';

const PAYMENT = /^\/orders\/(\d{1,20})\/payment$/;
const MAX_EVENT_BYTES = 1024 * 1024;
/** The events that tell something new about a payment. Others are answered 200, so that the provider does not repeat them. */
const MATTERS = /^(payment_intent\.succeeded|charge\.refunded|(charge\.)?refund\.(created|updated|failed))$/;

/**
 * @param {import('./settle.js').Parties & {
 *   webhookSecrets: readonly string[],
 *   buyerOf: (request: import('node:http').IncomingMessage) => string | undefined,
 *   log?: (text: unknown) => void,
 * }} shop `buyerOf` says who has signed in, by the shop's own session
 */
export function createShop(shop) {
  // Anybody could sign with an empty secret.
  if (shop.webhookSecrets.length === 0 || shop.webhookSecrets.includes(''))
    throw new Error('The secret of the webhook is missing: copy it from the provider');
  return createServer((request, response) => {
    answer(shop, request)
      .catch((error) => {
        (shop.log ?? console.error)(error);
        return reply(503, { code: 'unavailable' });
      })
      .then(({ status, body }) =>
        response
          .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
          .end(body),
      );
  });
}

async function answer(shop, request) {
  const [path] = request.url.split('?');
  if (path === '/provider/events' && request.method === 'POST') return event(shop, request);
  const orderId = PAYMENT.exec(path)?.[1];
  const buyerId = shop.buyerOf(request);
  if (orderId === undefined || buyerId === undefined) return reply(404, { code: 'not_found' });
  const found = await shop.ops.order(orderId);
  // Another buyer's order looks like one that does not exist.
  if (found.code === 'unknown_order' || (found.code === 'done' && found.order.buyerId !== buyerId))
    return reply(404, { code: 'not_found' });
  if (found.code !== 'done') throw new Error(`order ${orderId}: Stockade answered ${found.code}`);
  if (request.method === 'GET') return reply(200, told(found.order));
  if (request.method === 'POST') return begin(shop, found.order);
  return reply(405, { code: 'method_not_allowed' });
}

/** The buyer begins to pay. The browser completes the payment with the provider, by the client secret. */
async function begin({ ops, provider }, order) {
  const { orderId, saleId, quantity, expiresAt } = order;
  const state = told(order);
  if (state.code !== 'to_pay') return reply(409, state);
  const found = await ops.sale(saleId);
  if (found.code !== 'done') throw new Error(`sale ${saleId}: Stockade answered ${found.code}`);
  const { priceMinor, currency } = found.sale;
  if (!priceMinor || !currency) throw new Error(`Sale ${saleId} has no price: set priceMinor and currency`);
  const amount = priceMinor * quantity;
  const intent = await provider.createIntent({ orderId, amount, currency: currency.toLowerCase() });
  return reply(200, { clientSecret: intent.client_secret, amount, currency, payUntil: expiresAt });
}

/** What the buyer is told about the payment of an order. */
function told({ orderId, status, expiresAt, refundDue, refundedAt, retakenBy }) {
  if (status === 'unpaid' && !(Date.parse(expiresAt) <= Date.now()))
    return { code: 'to_pay', orderId, payUntil: expiresAt };
  if (retakenBy !== undefined) return { code: 'paid_late', orderId: retakenBy, replaces: orderId };
  if (refundDue) return { code: 'refund_due', orderId };
  if (refundedAt !== undefined) return { code: 'refunded', orderId };
  if (status === 'unpaid') return { code: 'expired', orderId };
  return { code: status, orderId };
}

/**
 * A webhook is only a hint that something has changed: this server then asks the provider what it is. So webhooks may come twice,
 * late or in another order. The answer waits until the work is done: if the work fails, the provider repeats the webhook.
 */
async function event(shop, request) {
  const body = await bytesOf(request);
  if (body === undefined) return reply(413, { code: 'too_large' });
  if (!isSigned(request.headers['stripe-signature'], body, shop.webhookSecrets))
    return reply(400, { code: 'bad_signature' });
  const { type, data } = JSON.parse(body.toString());
  if (!MATTERS.test(type)) return reply(200, {});
  const { object, id, payment_intent: paidBack } = data.object;
  const intentId = object === 'payment_intent' ? id : paidBack;
  if (intentId) await settle(shop, intentId);
  return reply(200, {});
}

/** The body as it came. @returns `undefined` if it is too large */
async function bytesOf(request) {
  const pieces = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    if (bytes <= MAX_EVENT_BYTES) pieces.push(piece);
  }
  return bytes > MAX_EVENT_BYTES ? undefined : Buffer.concat(pieces);
}

function reply(status, body) {
  return { status, body: JSON.stringify(body) };
}
