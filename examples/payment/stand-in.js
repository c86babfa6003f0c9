/**
 * A stand-in for the payment provider, for trials and tests: payment intents, refunds, idempotency keys, and signed webhooks that
 * are repeated. It keeps everything in memory and moves no money.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { signed } from './signature.js';

const INTENT = /^\/v1\/payment_intents\/(\w+)(\/confirm)?$/;
const RETRIES_MS = [1_000, 2_000, 4_000, 8_000, 16_000];

export class StandIn {
  /** Every webhook, the oldest first. */
  events = [];
  /** While this is true, webhooks are sent by `deliver` only. */
  isHolding = false;
  /** The status of new refunds: those that are `pending` wait for `endRefund`. */
  refundStatus = 'succeeded';
  #intents = new Map();
  #refunds = new Map();
  #answers = new Map();

  /** @param {{ secretKey: string, webhookUrl: string, webhookSecrets: string[], retriesMs?: number[] }} account */
  constructor(account) {
    this.account = { retriesMs: RETRIES_MS, ...account };
    this.server = createServer(async (request, response) => {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      const { status = 200, body } = this.#answer(request, Buffer.concat(pieces).toString());
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  }

  async listen(port = 0) {
    await once(this.server.listen(port, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  /** Ends the server, and the repetitions of its webhooks. */
  close() {
    this.isHolding = true;
    this.server.closeAllConnections();
    this.server.close();
  }

  refundsOf(intentId) {
    return [...this.#refunds.values()].filter((refund) => refund.payment_intent === intentId);
  }

  /** Forgets all idempotency keys, as the provider does after a day. */
  forgetKeys() {
    this.#answers.clear();
  }

  /** The bank has paid a pending refund, or could not. */
  endRefund(id, status = 'succeeded') {
    const refund = Object.assign(this.#refunds.get(id), { status });
    this.#tell(status === 'failed' ? 'refund.failed' : 'refund.updated', refund);
  }

  /** Sends a webhook once. @returns the status of the answer, 0 if there is none */
  async deliver(event, secrets = this.account.webhookSecrets) {
    const body = Buffer.from(JSON.stringify(event));
    const headers = { 'content-type': 'application/json', 'stripe-signature': signed(body, secrets) };
    const sent = fetch(this.account.webhookUrl, { method: 'POST', headers, body });
    return sent.then(
      ({ status }) => status,
      () => 0,
    );
  }

  #answer(request, text) {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    const fields = Object.fromEntries(new URLSearchParams(text));
    if (request.headers.authorization !== `Bearer ${this.account.secretKey}`)
      return refused(401, 'invalid_api_key');
    const key = request.headers['idempotency-key'];
    const asked = `${pathname} ${text}`;
    const before = key && this.#answers.get(key);
    if (before) return before.asked === asked ? before.answer : refused(400, 'idempotency_error');
    const answer = this.#act(`${request.method} ${pathname}`, fields, searchParams);
    if (key) this.#answers.set(key, { asked, answer });
    return answer;
  }

  #act(route, fields, query) {
    if (route === 'POST /v1/payment_intents') return this.#createIntent(fields);
    if (route === 'POST /v1/refunds') return this.#refund(fields);
    if (route === 'GET /v1/refunds')
      return { body: { object: 'list', data: this.refundsOf(query.get('payment_intent')) } };
    const [method, path] = route.split(' ');
    const [, id, confirm] = INTENT.exec(path) ?? [];
    const intent = this.#intents.get(id);
    if (!intent) return refused(404, 'resource_missing');
    if (method === 'GET' && !confirm) return { body: copy(intent) };
    return confirm ? this.#confirm(intent, fields) : refused(404, 'resource_missing');
  }

  #createIntent({ amount, currency, ...others }) {
    const id = newId('pi');
    const intent = {
      ...{ id, object: 'payment_intent', amount: Number(amount), amount_received: 0, currency },
      ...{ status: 'requires_payment_method', client_secret: `${id}_secret_${newId('')}` },
      metadata: { stockade_order: others['metadata[stockade_order]'] },
    };
    this.#intents.set(id, intent);
    return { body: copy(intent) };
  }

  /** The buyer pays. With the card `pm_card_declined` the payment fails, and may be tried again. */
  #confirm(intent, { payment_method: card }) {
    if (intent.status === 'succeeded') return refused(400, 'payment_intent_unexpected_state');
    if (card === 'pm_card_declined') {
      this.#tell('payment_intent.payment_failed', intent);
      return refused(402, 'card_declined');
    }
    Object.assign(intent, { status: 'succeeded', amount_received: intent.amount });
    this.#tell('payment_intent.succeeded', intent);
    return { body: copy(intent) };
  }

  #refund({ payment_intent: intentId, amount }) {
    const intent = this.#intents.get(intentId);
    if (!intent) return refused(404, 'resource_missing');
    const gone = this.refundsOf(intentId).filter(
      ({ status }) => status !== 'failed' && status !== 'canceled',
    );
    const left = intent.amount_received - gone.reduce((sum, refund) => sum + refund.amount, 0);
    if (left === 0) return refused(400, 'charge_already_refunded');
    const refund = {
      ...{ id: newId('re'), object: 'refund', payment_intent: intentId },
      ...{ amount: Number(amount ?? left), status: this.refundStatus },
    };
    this.#refunds.set(refund.id, refund);
    this.#tell('refund.created', refund);
    return { body: copy(refund) };
  }

  #tell(type, object) {
    const event = { id: newId('evt'), object: 'event', type, data: { object: copy(object) } };
    this.events.push(event);
    if (!this.isHolding) void this.#deliverUntilTaken(event);
  }

  async #deliverUntilTaken(event) {
    for (const pauseMs of [...this.account.retriesMs, 0]) {
      if (this.isHolding) return;
      const status = await this.deliver(event);
      if (status >= 200 && status < 300) return;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

function refused(status, code) {
  return { status, body: { error: { code } } };
}

function copy(object) {
  return structuredClone(object);
}

function newId(kind) {
  return `${kind}_${randomBytes(12).toString('hex')}`;
}

/** Whether Node was started with this file, whatever it was called: without its ending, or through a link. */
function isStarted() {
  try {
    return createRequire(import.meta.url).resolve(process.argv[1]) === fileURLToPath(import.meta.url);
  } catch {
    // It was started with no file, as by `node -e`.
    return false;
  }
}

if (isStarted()) {
  const { PROVIDER_KEY: secretKey = '', WEBHOOK_SECRET = '', WEBHOOK_URL, PORT = '4242' } = process.env;
  const webhookUrl = WEBHOOK_URL ?? 'http://localhost:3000/provider/events';
  const standIn = new StandIn({ secretKey, webhookUrl, webhookSecrets: WEBHOOK_SECRET.split(',') });
  console.log(await standIn.listen(Number(PORT)));
}
