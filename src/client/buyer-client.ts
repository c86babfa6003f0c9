/** The buyers' port, for one buyer: in a browser, or in a shop's backend on the buyer's behalf. */
import {
  type Operations,
  type Order,
  type Problems,
  type PublicSale,
  ROUTES,
} from './generated/buyers-api.ts';
import { outcomeOf, type Refusal } from './outcome.ts';
import { type CallOptions, type ClientOptions, Transport } from './transport.ts';

type Refused<Name extends keyof Operations> =
  | Refusal<Problems, Operations[Name]['code']>
  | Problems['unknown' | 'unavailable'];

export interface NewPurchase {
  readonly saleId: string;
  /** Units, 1 to the sale's limit per buyer; all or nothing. Default 1. */
  readonly quantity?: number | undefined;
  /** An idempotency key, 1 to 128 visible ASCII characters. Default: a random one, which the outcome tells. */
  readonly key?: string | undefined;
  /** False: be content with `accepted`. Default true. */
  readonly awaitCommit?: boolean | undefined;
  /** Where the sale asks for one. */
  readonly purchaseToken?: string | undefined;
}

/** `committed` and `accepted` have bought; `unknown` may have: ask again with the same `key`. All others left no order. */
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
export type ChangeOutcome<Name extends 'payOrder' | 'cancelOrder' | 'redeemOrder'> =
  | { readonly code: 'done'; readonly order: Order }
  | Refused<Name>;
export type TokenOutcome =
  | { readonly code: 'issued'; readonly token: string; readonly saleId: string; readonly expiresAt: string }
  | Refused<'getPurchaseToken'>;

export type PayType = Operations['payOrder']['body']['payType'];

/** A port answers within two seconds, unless it is configured otherwise. */
const ATTEMPT_MS = 5_000;

export class BuyerClient {
  readonly #transport: Transport;

  /**
   * @param options with `headers` that say who buys: `X-Buyer-Id`, or `Authorization: Bearer …`, as the node asks for
   * @throws TypeError, RangeError
   */
  constructor(options: ClientOptions) {
    this.#transport = new Transport(options, ATTEMPT_MS);
  }

  /** Buys, once, however often it has to ask. @throws UnexpectedAnswer, the signal's reason */
  async purchase(purchase: NewPurchase, { signal }: CallOptions = {}): Promise<PurchaseOutcome> {
    const { saleId, quantity = 1, key = randomKey(), awaitCommit = true, purchaseToken } = purchase;
    const answer = await this.#transport.call({
      route: ROUTES.buy,
      params: { saleId },
      body: { quantity } satisfies Operations['buy']['body'],
      headers: {
        'idempotency-key': key,
        ...(!awaitCommit && { prefer: 'respond-async' }),
        ...(purchaseToken !== undefined && { 'purchase-token': purchaseToken }),
      },
      repeatable: true,
      changes: true,
      signal,
    });
    return outcomeOf(
      answer.ok ? answer : { ok: false, problem: { ...answer.problem, key } as never },
      ({ status, ...order }: Operations['buy']['answer']) => ({ code: status, ...order, key }),
    );
  }

  /** A token for a purchase, or the challenge to be solved for it. @param answer to the challenge */
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

  /** Only where the node lets buyers pay by themselves, which is for trials. */
  pay(orderId: string, payType: PayType, options?: CallOptions): Promise<ChangeOutcome<'payOrder'>> {
    return this.#change('payOrder', orderId, { payType }, options);
  }

  /** An order that is not paid; its units are for sale again. */
  cancel(orderId: string, options?: CallOptions): Promise<ChangeOutcome<'cancelOrder'>> {
    return this.#change('cancelOrder', orderId, {}, options);
  }

  /** As `pay`. */
  redeem(orderId: string, options?: CallOptions): Promise<ChangeOutcome<'redeemOrder'>> {
    return this.#change('redeemOrder', orderId, {}, options);
  }

  /** What was done is not done twice. */
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
