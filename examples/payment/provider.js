/** The four requests to the payment provider that a shop needs. Each fails loudly, so that the caller repeats its work. */

const LIMIT_MS = 5_000;
/** Refunds that have paid something back, or are about to. */
const UNDER_WAY = ['pending', 'requires_action', 'succeeded'];

export class Provider {
  #url;
  #secretKey;

  /** @param {{ url: string, secretKey: string }} account */
  constructor({ url, secretKey }) {
    this.#url = url;
    this.#secretKey = secretKey;
  }

  /** Creates the payment of an order, or finds it: the order's id is the idempotency key. `amount` is in minor units. */
  createIntent({ orderId, amount, currency }) {
    const fields = { amount, currency, 'metadata[stockade_order]': orderId };
    return this.#ask('POST', '/v1/payment_intents', fields, orderId);
  }

  intent(id) {
    return this.#ask('GET', `/v1/payment_intents/${encodeURIComponent(id)}`);
  }

  /** How much of a payment went back, and how much is on its way, in minor units. */
  async paidBack(intent) {
    const { data } = await this.#ask('GET', `/v1/refunds?limit=100&payment_intent=${intent.id}`);
    const sum = (statuses) =>
      data.filter(({ status }) => statuses.includes(status)).reduce((all, { amount }) => all + amount, 0);
    return {
      done: sum(['succeeded']),
      underWay: sum(UNDER_WAY),
      hasFailed: data.some(({ status }) => status === 'failed' || status === 'canceled'),
    };
  }

  /** Pays back what is left of a payment. Repeated with the same key, it pays back once. */
  refund(intent) {
    return this.#ask('POST', '/v1/refunds', { payment_intent: intent.id }, `refund:${intent.id}`);
  }

  async #ask(method, path, fields, idempotencyKey) {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#secretKey}`,
        ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
      },
      ...(fields && { body: new URLSearchParams(fields) }),
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: the provider answered ${response.status}: ${text}`);
    return JSON.parse(text);
  }
}
