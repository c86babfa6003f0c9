/** A client of the buyers' port for one buyer. It runs in the buyer's browser, or in a shop's backend. */
import {
  CODES,
  type Operations,
  type Order,
  type Place,
  type Problems,
  type PublicSale,
  ROUTES,
} from './generated/buyers-api.ts';
import { outcomeOf, type Refusal } from './outcome.ts';
import { followPlace, followSale, type PlaceUpdate, type SaleUpdate } from './sale-stream.ts';
import { type CallOptions, type ClientOptions, Transport, UnexpectedAnswer } from './transport.ts';

type Refused<Name extends keyof Operations> =
  | Refusal<Problems, Operations[Name]['code']>
  | Problems['unknown' | 'unavailable'];

export interface NewPurchase {
  readonly saleId: string;
  /** Units, 1 to the sale's limit per buyer; all or nothing. Default 1. */
  readonly quantity?: number | undefined;
  /** An idempotency key, 1 to 128 visible ASCII characters. Default: a random one, which the outcome contains. */
  readonly key?: string | undefined;
  /** False: the answer `accepted` is enough. Default true. */
  readonly awaitCommit?: boolean | undefined;
  /** Needed if the sale requires a purchase token; if it has a queue, the token of the offer. */
  readonly purchaseToken?: string | undefined;
  /**
   * What the shop calls the order, one line of at most 200 characters. A repetition keeps that of the first purchase. A node
   * without PUBLIC_ORDER_NOTES=1 refuses a purchase with it.
   */
  readonly reference?: string | undefined;
  /** What the shop notes with the order, at most 4,096 bytes as JSON; otherwise like `reference`. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * With `committed` and `accepted` there is an order. With `unknown` there may be one: repeat the purchase with the same `key`.
 * With any other outcome the buyer has no order from this purchase. If an attempt got no answer, there may have been one that has
 * ended.
 */
export type PurchaseOutcome = (
  | {
      readonly code: 'committed' | 'accepted';
      readonly orderId: string;
      readonly saleId: string;
      readonly quantity: number;
    }
  | Refused<'buy'>
) & { readonly key: string };

export type SaleOutcome = { readonly code: 'found'; readonly sale: PublicSale } | Refused<'readSale'>;
export type OrderOutcome = { readonly code: 'found'; readonly order: Order } | Refused<'readOrder'>;
export type OrdersOutcome<Name extends 'ownOrders' | 'ownOrdersOfSale'> =
  | { readonly code: 'found'; readonly orders: readonly Order[]; readonly next?: string | undefined }
  | Refused<Name>;
export type ChangeOutcome<Name extends 'payOrder' | 'cancelOrder' | 'redeemOrder'> =
  | { readonly code: 'done'; readonly order: Order }
  | Refused<Name>;
export type TokenOutcome =
  | { readonly code: 'issued'; readonly token: string; readonly saleId: string; readonly expiresAt: string }
  | Refused<'getPurchaseToken'>;

export type PlaceOutcome<Name extends 'takePlace' | 'readPlace' | 'leavePlace'> =
  | { readonly code: 'found'; readonly place: Place }
  | Refused<Name>;

export interface PlaceWish {
  /** Units, 1 to the sale's limit per buyer. Default 1. A place keeps its first quantity. */
  readonly quantity?: number | undefined;
  /** Needed if the sale requires a purchase token. */
  readonly purchaseToken?: string | undefined;
}

export type PayType = Operations['payOrder']['body']['payType'];

/** Which page of a list. */
export interface Page {
  /** `next` of the page before. */
  readonly after?: string | undefined;
  /** Orders in a page, 1 to 1,000. Default 100. */
  readonly limit?: number | undefined;
}

/**
 * A purchase was aborted after a request was sent, and the client had made its key: repeat the purchase with this `key` to learn
 * whether there is an order. Its `cause` is the signal's reason.
 */
export class PurchaseAborted extends Error {
  readonly key: string;

  constructor(key: string, cause: unknown) {
    super('the purchase was aborted, and may have been executed: repeat it with its key', { cause });
    this.name = 'PurchaseAborted';
    this.key = key;
  }
}

/** Limit for one request. By default a node answers within two seconds (REQUEST_DEADLINE_MS). */
const ATTEMPT_MS = 5_000;
const KEY = /^[\x21-\x7e]{1,128}$/;

export class BuyerClient {
  readonly #transport: Transport;

  /**
   * @param options must have `headers` that identify the buyer as the node requires: `X-Buyer-Id`, or `Authorization: Bearer …`
   * @throws TypeError if the URL or a header is wrong, RangeError if a time is
   */
  constructor(options: ClientOptions) {
    this.#transport = new Transport(options, ATTEMPT_MS, CODES);
  }

  /**
   * Makes one purchase, even if it has to repeat the request.
   * @throws UnexpectedAnswer; the signal's reason, or PurchaseAborted if the purchase may have been executed and the client has made
   * its key; TypeError before anything is sent
   */
  async purchase(purchase: NewPurchase, { signal }: CallOptions = {}): Promise<PurchaseOutcome> {
    const { saleId, quantity = 1, key = randomKey(), awaitCommit = true, purchaseToken } = purchase;
    const { reference, metadata } = purchase;
    // Without a key the node would take each repetition for another purchase, and `null` would be the key of many.
    if (!KEY.test(key) || typeof key !== 'string')
      throw new TypeError(`key is ${JSON.stringify(key)}, but must be 1 to 128 visible ASCII characters`);
    let isSent = false;
    const call = this.#transport.call({
      route: ROUTES.buy,
      params: { saleId },
      body: { quantity, reference, metadata } satisfies Operations['buy']['body'],
      headers: {
        'idempotency-key': key,
        ...(!awaitCommit && { prefer: 'respond-async' }),
        ...(purchaseToken !== undefined && { 'purchase-token': purchaseToken }),
      },
      repeatable: true,
      changes: true,
      sent: () => {
        isSent = true;
      },
      signal,
    });
    const answer = await call.catch((error: unknown) => {
      if (error instanceof UnexpectedAnswer) error.key = key;
      // Not a property of the reason: one signal may end several purchases.
      else if (isSent && purchase.key === undefined) throw new PurchaseAborted(key, error);
      throw error;
    });
    // A refusal gets the key too, so that the caller can repeat the purchase. Its type has no fields of its own for that.
    return outcomeOf(
      answer.ok ? answer : { ok: false, problem: { ...answer.problem, key } as never },
      ({ status, ...order }: Operations['buy']['answer']) => ({ code: status, ...order, key }),
    );
  }

  /** Gets a purchase token, or the challenge to solve for it. @param answer the answer to the challenge */
  async purchaseToken(saleId: string, answer?: unknown, { signal }: CallOptions = {}): Promise<TokenOutcome> {
    const given = await this.#transport.call({
      route: ROUTES.getPurchaseToken,
      params: { saleId },
      body: answer === undefined ? {} : { answer },
      repeatable: true,
      changes: false,
      signal,
    });
    return outcomeOf(given, (token: Operations['getPurchaseToken']['answer']) => ({
      code: 'issued',
      ...token,
    }));
  }

  /** Gets a place in the queue of a sale, or the one that the buyer has. */
  async takePlace(
    saleId: string,
    { quantity = 1, purchaseToken }: PlaceWish = {},
    { signal }: CallOptions = {},
  ): Promise<PlaceOutcome<'takePlace'>> {
    const answer = await this.#transport.call({
      route: ROUTES.takePlace,
      params: { saleId },
      body: { quantity } satisfies Operations['takePlace']['body'],
      headers: purchaseToken === undefined ? {} : { 'purchase-token': purchaseToken },
      repeatable: true,
      changes: true,
      signal,
    });
    return outcomeOf(answer, (place: Place) => ({ code: 'found', place }));
  }

  /**
   * The buyer's place now. Ask every few seconds: a buyer that asks no more is passed over when its turn comes.
   * @param placeToken of an earlier answer; without it, the node has to read Postgres
   */
  async place(
    saleId: string,
    placeToken?: string,
    { signal }: CallOptions = {},
  ): Promise<PlaceOutcome<'readPlace'>> {
    const answer = await this.#transport.call({
      route: ROUTES.readPlace,
      params: { saleId },
      headers: placeToken === undefined ? {} : { 'place-token': placeToken },
      repeatable: true,
      changes: false,
      signal,
    });
    return outcomeOf(answer, (place: Place) => ({ code: 'found', place }));
  }

  /**
   * How the buyer's place stands now, and again whenever that changes. It connects again by itself, as `followSale` does. A buyer
   * that listens is present. It ends when the place neither waits nor has an offer.
   * @param placeToken as for `place`
   * @throws UnexpectedAnswer, the signal's reason, TypeError if the id or the token can't be sent
   */
  followPlace(
    saleId: string,
    placeToken?: string,
    { signal }: CallOptions = {},
  ): AsyncGenerator<PlaceUpdate, void> {
    return followPlace(this.#transport, { saleId, placeToken }, signal);
  }

  /**
   * Leaves the queue, and gives back the offer if there is one.
   * @param placeToken names the place that is left: a place that the buyer has got since stays. Without it, the buyer leaves the place
   * that it has when the request is carried out
   */
  async leave(
    saleId: string,
    placeToken?: string,
    { signal }: CallOptions = {},
  ): Promise<PlaceOutcome<'leavePlace'>> {
    const answer = await this.#transport.call({
      route: ROUTES.leavePlace,
      params: { saleId },
      headers: placeToken === undefined ? {} : { 'place-token': placeToken },
      repeatable: true,
      changes: true,
      signal,
    });
    return outcomeOf(answer, (place: Place) => ({ code: 'found', place }));
  }

  async sale(saleId: string, { signal }: CallOptions = {}): Promise<SaleOutcome> {
    const answer = await this.#transport.call({
      route: ROUTES.readSale,
      params: { saleId },
      repeatable: true,
      changes: false,
      signal,
    });
    return outcomeOf(answer, (sale: PublicSale) => ({ code: 'found', sale }));
  }

  /**
   * The state of a sale now, and again whenever it changes. It connects again by itself, until the sale has ended, the signal is
   * aborted, or the loop that reads it is left.
   * @throws UnexpectedAnswer, the signal's reason
   */
  followSale(saleId: string, { signal }: CallOptions = {}): AsyncGenerator<SaleUpdate, void> {
    return followSale(this.#transport, saleId, signal);
  }

  async order(orderId: string, { signal }: CallOptions = {}): Promise<OrderOutcome> {
    const answer = await this.#transport.call({
      route: ROUTES.readOrder,
      params: { orderId },
      repeatable: true,
      changes: false,
      signal,
    });
    return outcomeOf(answer, (order: Order) => ({ code: 'found', order }));
  }

  /** A page of the buyer's orders in a sale, the newest first. */
  ordersOf(
    saleId: string,
    page: Page = {},
    options?: CallOptions,
  ): Promise<OrdersOutcome<'ownOrdersOfSale'>> {
    return this.#orders('ownOrdersOfSale', { saleId }, page, options);
  }

  /** A page of the buyer's orders in all sales, the newest sale first. A page may be empty although more follow. */
  orders(page: Page = {}, options?: CallOptions): Promise<OrdersOutcome<'ownOrders'>> {
    return this.#orders('ownOrders', {}, page, options);
  }

  async #orders<Name extends 'ownOrders' | 'ownOrdersOfSale'>(
    name: Name,
    params: Readonly<Record<string, string>>,
    page: Page,
    { signal }: CallOptions = {},
  ): Promise<OrdersOutcome<Name>> {
    const answer = await this.#transport.call({
      route: ROUTES[name],
      params,
      query: { ...page },
      repeatable: true,
      changes: false,
      signal,
    });
    return outcomeOf(answer, (found: Operations[Name]['answer']) => ({ code: 'found', ...found }));
  }

  /** Marks the order paid. Only a node with PUBLIC_PAYMENT=1 allows this, which is meant for trials. */
  pay(orderId: string, payType: PayType, options?: CallOptions): Promise<ChangeOutcome<'payOrder'>> {
    return this.#change('payOrder', orderId, { payType }, options);
  }

  /** Cancels an unpaid order; its units go back for sale. */
  cancel(orderId: string, options?: CallOptions): Promise<ChangeOutcome<'cancelOrder'>> {
    return this.#change('cancelOrder', orderId, {}, options);
  }

  /** Marks the order redeemed. Only a node with PUBLIC_PAYMENT=1 allows this. */
  redeem(orderId: string, options?: CallOptions): Promise<ChangeOutcome<'redeemOrder'>> {
    return this.#change('redeemOrder', orderId, {}, options);
  }

  /** A node makes a repeated change only once, so the request may be repeated. */
  async #change<Name extends 'payOrder' | 'cancelOrder' | 'redeemOrder'>(
    name: Name,
    orderId: string,
    body: object,
    { signal }: CallOptions = {},
  ): Promise<ChangeOutcome<Name>> {
    const answer = await this.#transport.call({
      route: ROUTES[name],
      params: { orderId },
      body,
      repeatable: true,
      changes: true,
      signal,
    });
    return outcomeOf(answer, (order: Order) => ({ code: 'done', order }));
  }
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without TLS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
