/**
 * The requests of buyers in a soak: everything that the public port offers, with aborted connections. The shop
 * reports payments.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Agent, request } from 'undici';
import { monotonicMs } from '../../src/lib/monotonic.ts';
import { type Random, random } from '../../test/support/random.ts';
import { BenchFailure } from '../support/failure.ts';

export interface Sales {
  /** The sale that sells now. */
  readonly open: string;
  readonly soldOut: string;
  readonly notStarted: string;
}

/** The ports of the node. Payments are reported at the ops port. */
export interface Shop {
  readonly publicUrl: string;
  readonly opsUrl: string;
  readonly opsToken: string;
}

interface Bought {
  readonly buyerId: string;
  readonly saleId: string;
  readonly key: string;
  readonly orderId: string;
  readonly toldAtMs: number;
  /** Its buyer has requested a cancellation or a payment. */
  changed: boolean;
}

/** Connections that the buyers share. */
const CONNECTIONS = 32;
/** Orders that are remembered for later repetitions, payments and cancellations. */
const REMEMBERED = 500;
const ANSWER_LIMIT_MS = 35_000;

/** Out of 100 requests. The rest are purchases that wait for their commit. */
const SHARES = [
  [8, 'async'],
  [10, 'repeat'],
  [8, 'cancel'],
  [8, 'pay'],
  [8, 'soldOut'],
  [4, 'notStarted'],
  [4, 'readSale'],
  [4, 'readOrder'],
  [3, 'unknownSale'],
  [4, 'abort'],
] as const;

type Deed = (typeof SHARES)[number][1] | 'buy';

/** Requests about an earlier order. */
const OF_OLD: ReadonlySet<Deed> = new Set(['repeat', 'cancel', 'pay', 'readOrder']);

/** Statuses that a healthy node may answer. Any other is counted, and fails the soak. */
const EXPECTED: Readonly<Record<Deed, readonly number[]>> = {
  buy: [201, 202],
  async: [202],
  // The order may have been cancelled or have expired, and its sale may be closed.
  repeat: [201, 202, 403],
  cancel: [200, 409],
  pay: [200, 409],
  soldOut: [409],
  notStarted: [403],
  unknownSale: [404],
  readSale: [200],
  readOrder: [200],
  abort: [],
};
/**
 * A repeated purchase must be answered with an order this young, if its buyer has not changed it. Below PAY_WITHIN_S.
 */
const YOUNG_MS = 8_000;

export class Deeds implements AsyncDisposable {
  readonly answers = new Map<string, number>();
  /** Orders named in answers to buyers. */
  orders = 0;
  readonly #shop: Shop;
  readonly #random: Random;
  readonly #agent = new Agent({ connections: CONNECTIONS });
  readonly #bought: Bought[] = [];
  #buyers = 0;
  #wrong: string | undefined;

  constructor(shop: Shop, seed: number) {
    this.#shop = shop;
    this.#random = random(seed);
  }

  /** Sends one request, chosen at random. @throws BenchFailure if the answer is not one that a healthy node gives */
  async next(sales: Sales): Promise<void> {
    const deed = this.#draw();
    const status = await this.#do(deed, sales);
    const name = `${deed} ${status}`;
    this.answers.set(name, (this.answers.get(name) ?? 0) + 1);
    if (status !== 0 && !EXPECTED[deed].includes(status)) this.#wrong ??= name;
  }

  assertSound(): void {
    if (this.#wrong !== undefined) throw new BenchFailure(`an answer was wrong: ${this.#wrong}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.close();
  }

  #draw(): Deed {
    let drawn = this.#random.whole(0, 99);
    for (const [share, deed] of SHARES) {
      if (drawn < share) return this.#bought.length > 0 || !OF_OLD.has(deed) ? deed : 'buy';
      drawn -= share;
    }
    return 'buy';
  }

  async #do(deed: Deed, sales: Sales): Promise<number> {
    switch (deed) {
      case 'buy':
        return this.#buy(sales.open);
      case 'async':
        return this.#buy(sales.open, { prefer: 'respond-async' });
      case 'soldOut':
        return this.#order(sales.soldOut, this.#newBuyer(), {});
      case 'notStarted':
        return this.#order(sales.notStarted, this.#newBuyer(), {});
      case 'unknownSale':
        return this.#order(`none-${this.#random.whole(1, 1_000_000)}`, this.#newBuyer(), {});
      case 'readSale':
        return this.#ask('GET', `/v1/sales/${sales.open}`);
      case 'abort':
        return this.#abort(sales.open);
      default:
        return this.#again(deed, this.#random.pick(this.#bought));
    }
  }

  #again(deed: 'repeat' | 'cancel' | 'pay' | 'readOrder', old: Bought): Promise<number> {
    const path = `/v1/orders/${old.orderId}`;
    const headers = { 'x-buyer-id': old.buyerId };
    switch (deed) {
      case 'repeat':
        return this.#repeat(old);
      case 'readOrder':
        return this.#ask('GET', path, headers);
      case 'cancel':
        old.changed = true;
        return this.#ask('POST', `${path}/cancel`, headers);
      case 'pay':
        old.changed = true;
        return this.#askOps(`${path}/pay`, '{"payType":"card"}');
    }
  }

  #repeat(old: Bought): Promise<number> {
    return this.#order(old.saleId, old.buyerId, { 'idempotency-key': old.key }, (orderId) => {
      const isTheSame = !old.changed && monotonicMs() - old.toldAtMs < YOUNG_MS;
      if (isTheSame && orderId !== old.orderId)
        this.#wrong ??= `repeat of ${old.orderId}: answered ${orderId}`;
    });
  }

  async #buy(saleId: string, headers: Record<string, string> = {}): Promise<number> {
    const buyerId = this.#newBuyer();
    const key = `key-${buyerId}`;
    return this.#order(saleId, buyerId, { ...headers, 'idempotency-key': key }, (orderId) => {
      this.orders++;
      this.#bought.push({ buyerId, saleId, key, orderId, toldAtMs: monotonicMs(), changed: false });
      if (this.#bought.length > REMEMBERED) this.#bought.shift();
    });
  }

  async #order(
    saleId: string,
    buyerId: string,
    headers: Record<string, string>,
    taken?: (orderId: string) => void,
  ): Promise<number> {
    const all = { 'x-buyer-id': buyerId, ...headers };
    return this.#ask('POST', `/v1/sales/${saleId}/orders`, all, '{"quantity":1}', (body) => {
      const { orderId } = JSON.parse(body) as { orderId?: string };
      if (orderId !== undefined) taken?.(orderId);
    });
  }

  async #ask(
    method: 'GET' | 'POST',
    path: string,
    headers: Record<string, string> = {},
    body: string | null = null,
    told: (body: string) => void = () => {},
  ): Promise<number> {
    const { status, text } = await this.#send(method, `${this.#shop.publicUrl}${path}`, headers, body);
    if (status === 201 || status === 202) told(text);
    return status;
  }

  async #askOps(path: string, body: string): Promise<number> {
    const { opsUrl, opsToken } = this.#shop;
    return (await this.#send('POST', `${opsUrl}${path}`, { authorization: `Bearer ${opsToken}` }, body))
      .status;
  }

  async #send(method: 'GET' | 'POST', url: string, headers: Record<string, string>, body: string | null) {
    const timeouts = { headersTimeout: ANSWER_LIMIT_MS, bodyTimeout: ANSWER_LIMIT_MS };
    const answer = await request(url, { dispatcher: this.#agent, method, headers, body, ...timeouts });
    return { status: answer.statusCode, text: await answer.body.text() };
  }

  /** A purchase whose connection is cut before its answer. @returns 0, for no status */
  async #abort(saleId: string): Promise<number> {
    const { hostname, port } = new URL(this.#shop.publicUrl);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    await once(socket, 'connect');
    const head = `POST /v1/sales/${saleId}/orders HTTP/1.1\r\nHost: localhost\r\nX-Buyer-Id: ${this.#newBuyer()}\r\n`;
    await new Promise((resolve) => socket.write(`${head}Content-Length: 14\r\n\r\n{"quantity":1}`, resolve));
    socket.resetAndDestroy();
    return 0;
  }

  #newBuyer(): string {
    return `buyer-${this.#buyers++}`;
  }
}
