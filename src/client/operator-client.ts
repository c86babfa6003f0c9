/** A client of a node's ops port. */
import {
  CODES,
  type Deletion,
  type NewSale,
  type Operations,
  type Order,
  type Problems,
  type QueueChange,
  type QueueStatus,
  type Recovery,
  ROUTES,
  type Sale,
  type SaleChange,
  type VerifyReport,
} from './generated/operators-api.ts';
import { outcomeOf, type Refusal } from './outcome.ts';
import { type CallOptions, type ClientOptions, joined, type Request, Transport } from './transport.ts';

export interface OperatorOptions extends ClientOptions {
  /** `OPS_TOKEN` of the node. */
  readonly token: string;
  /** The operator's name for the ledger, 1 to 200 printable ASCII characters. */
  readonly operator?: string | undefined;
}

/** Which page of a list that has no filters. */
export interface PageOptions extends CallOptions {
  /** `next` of the page before. */
  readonly after?: string | undefined;
  /** 1 to 1,000. */
  readonly limit?: number | undefined;
}

/** Which orders of a sale, from the end or the beginning, and where to go on. */
export interface OrderQuery {
  readonly status?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly buyer?: string | undefined;
  /** The shop's own reference of an order. */
  readonly reference?: string | undefined;
  /** Default `newest`. */
  readonly order?: 'newest' | 'oldest' | undefined;
  /** `next` of the page before. */
  readonly after?: string | undefined;
  /** 1 to 1,000. Default 100. */
  readonly limit?: number | undefined;
}

type Name = keyof Operations;
type Refused<Of extends Name> =
  | Refusal<Problems, Operations[Of]['code']>
  | Problems['unknown' | 'unavailable'];
type Found<Of extends Name> = ({ readonly code: 'found' } & Operations[Of]['answer']) | Refused<Of>;
export type SaleOutcome<Of extends Name> = { readonly code: 'done'; readonly sale: Sale } | Refused<Of>;
export type OrderOutcome<Of extends Name> = { readonly code: 'done'; readonly order: Order } | Refused<Of>;
export type LedgerOutcome = ({ readonly code: 'found' } & Operations['ledger']['answer']) | Refused<'ledger'>;
export type VerifyOutcome = { readonly code: 'found'; readonly report: VerifyReport } | Refused<'verify'>;
export type RecoveryOutcome<Of extends Name> =
  | { readonly code: 'found'; readonly recovery: Recovery }
  | Refused<Of>;
export type DeletionOutcome<Of extends Name> =
  | { readonly code: 'found'; readonly deletion: Deletion }
  | Refused<Of>;
export interface SaleQuery {
  /** Missing: every state. */
  readonly state?: Sale['state'] | undefined;
  /** Whether archived sales are left out, are in the list too, or are the only ones. Missing: left out. */
  readonly archived?: 'exclude' | 'include' | 'only' | undefined;
  /** The window of the sale begins at this time or later: ISO 8601 with zone. */
  readonly since?: string | undefined;
  /** The window begins before this time. */
  readonly until?: string | undefined;
  readonly after?: string | undefined;
  /** 1 to 1,000. Default: 100. */
  readonly limit?: number | undefined;
}
export type QueueOutcome<Of extends Name> =
  | { readonly code: 'found'; readonly queue: QueueStatus }
  | Refused<Of>;
/** Which places of a queue. */
export interface PlaceQuery {
  /** Missing: every state. */
  readonly state?: 'waiting' | 'offered' | 'bought' | 'lapsed' | 'left' | undefined;
  /** `next` of the page before. */
  readonly after?: number | undefined;
  /** 1 to 1,000. Default: 100, with `buyer` 1,000. */
  readonly limit?: number | undefined;
  /** The places of this buyer, the newest first. Not together with `state`. */
  readonly buyer?: string | undefined;
}
export type PayType = Operations['payOrder']['body']['payType'];

/** Limits for one request. A node abandons an operation after 40 s, and a verification or the begin of a deletion after 10 minutes. */
const ATTEMPT_MS = 45_000;
const LONG_ATTEMPT_MS = 610_000;
const READS = { repeatable: true, changes: false };
const REPEATABLE = { repeatable: true, changes: true };
/** A second request would make the change twice, or its answer would not tell whether the first one made it. */
const ONCE = { repeatable: false, changes: true };
const ADDS_UP: readonly SaleChange['action'][] = ['top-up', 'withdraw'];

export class OperatorClient {
  readonly #transport: Transport;
  readonly #headers: Readonly<Record<string, string>>;

  /** @throws TypeError if the URL, the token, the operator or a header is wrong, RangeError if a time is */
  constructor({ token, operator, ...options }: OperatorOptions) {
    this.#transport = new Transport(
      { ...options, deadlineMs: options.deadlineMs ?? ATTEMPT_MS },
      ATTEMPT_MS,
      CODES,
    );
    this.#headers = joined({
      authorization: `Bearer ${token}`,
      ...(operator !== undefined && { 'x-operator': operator }),
    });
  }

  /** The request is not repeated. After `unknown` the sale may exist: look for it before you create it again. */
  createSale(sale: NewSale, options?: CallOptions): Promise<SaleOutcome<'createSale'>> {
    return this.#sale('createSale', {}, sale, ONCE, options);
  }

  /** A page, the newest first: `next` of its answer is `after` of the next one. */
  sales(query: SaleQuery = {}, options?: CallOptions): Promise<Found<'listSales'>> {
    return this.#found('listSales', {}, options, { ...READS, query: { ...query } });
  }

  sale(saleId: string, options?: CallOptions): Promise<SaleOutcome<'showSale'>> {
    return this.#sale('showSale', { saleId }, undefined, READS, options);
  }

  /** Requests to top up or withdraw are not repeated: after `unknown`, the ledger tells whether the change was made. */
  changeSale(saleId: string, change: SaleChange, options?: CallOptions): Promise<SaleOutcome<'changeSale'>> {
    const how = ADDS_UP.includes(change.action) ? ONCE : REPEATABLE;
    return this.#sale('changeSale', { saleId }, change, how, options);
  }

  /**
   * Begins to delete an archived sale with all its orders. The request is not repeated: after `unknown`, `deletion` tells
   * whether it has begun.
   * @param orders how many orders the sale has: export them first, and count them
   */
  deleteSale(
    saleId: string,
    orders = 0,
    reason?: string,
    options?: CallOptions,
  ): Promise<DeletionOutcome<'deleteSale'>> {
    const how = { ...ONCE, query: { orders, reason }, attemptMs: LONG_ATTEMPT_MS };
    return this.#deletion('deleteSale', saleId, how, options);
  }

  /** The newest deletion of a sale with this id. */
  deletion(saleId: string, options?: CallOptions): Promise<DeletionOutcome<'deletion'>> {
    return this.#deletion('deletion', saleId, READS, options);
  }

  /** A page, by default of 1,000 entries, the oldest first. */
  ledger(saleId: string, { after, limit, ...options }: PageOptions = {}): Promise<LedgerOutcome> {
    return this.#found('ledger', { saleId }, options, { ...READS, query: { after, limit } });
  }

  /** @param repair repair differences that have a proven cause */
  async verify(saleId: string, repair = false, options?: CallOptions): Promise<VerifyOutcome> {
    const answer = await this.#call(
      'verify',
      { saleId },
      { repair },
      { ...REPEATABLE, attemptMs: LONG_ATTEMPT_MS },
      options,
    );
    return outcomeOf(answer, (report: VerifyReport) => ({ code: 'found', report }));
  }

  /** @param dryRun move nothing, and report what would be moved */
  rebalance(saleId: string, dryRun = false, options?: CallOptions): Promise<Found<'rebalance'>> {
    return this.#found('rebalance', { saleId }, options, { ...REPEATABLE, body: { dryRun } });
  }

  /** Starts a rebuild of the sale unless one is under way. */
  recover(saleId: string, options?: CallOptions): Promise<RecoveryOutcome<'recover'>> {
    return this.#recovery('recover', saleId, REPEATABLE, options);
  }

  /** The progress of the rebuild in the node that this client calls. */
  recovery(saleId: string, options?: CallOptions): Promise<RecoveryOutcome<'recovery'>> {
    return this.#recovery('recovery', saleId, READS, options);
  }

  /** How the queue of a sale stands. @param count count its places by state, however many there are */
  async queue(saleId: string, count = false, options?: CallOptions): Promise<QueueOutcome<'showQueue'>> {
    const query = { count: String(count) };
    const answer = await this.#call('showQueue', { saleId }, undefined, { ...READS, query }, options);
    return outcomeOf(answer, (queue: QueueStatus) => ({ code: 'found', queue }));
  }

  /**
   * Stops the offers of a queue, lets them go on, sets their pace, or hands out a number of them. The request to hand out is not
   * repeated: the offers that were made after the first one would not count in the second.
   */
  async changeQueue(
    saleId: string,
    change: QueueChange,
    options?: CallOptions,
  ): Promise<QueueOutcome<'changeQueue'>> {
    const how = change.action === 'hand-out' ? ONCE : REPEATABLE;
    const answer = await this.#call('changeQueue', { saleId }, change, how, options);
    return outcomeOf(answer, (queue: QueueStatus) => ({ code: 'found', queue }));
  }

  /** A page of the places of a queue, in the order of their numbers; those of one buyer in the reverse order. */
  places(saleId: string, query: PlaceQuery = {}, options?: CallOptions): Promise<Found<'listPlaces'>> {
    return this.#found('listPlaces', { saleId }, options, { ...READS, query: { ...query } });
  }

  /** The file that proves the draw of a queue: lines of JSON, 108 MB for a million entries. */
  async drawFile(
    saleId: string,
    options?: CallOptions,
  ): Promise<{ readonly code: 'found'; readonly text: string } | Refused<'drawFile'>> {
    const answer = await this.#call('drawFile', { saleId }, undefined, READS, options);
    return outcomeOf(answer, (text: string) => ({ code: 'found', text }));
  }

  /** A page of a sale's orders. @param query times are ISO 8601 with zone; statuses are separated by commas */
  orders(saleId: string, query: OrderQuery = {}, options?: CallOptions): Promise<Found<'listOrders'>> {
    return this.#found('listOrders', { saleId }, options, { ...READS, query: { ...query } });
  }

  order(orderId: string, options?: CallOptions): Promise<OrderOutcome<'showOrder'>> {
    return this.#order('showOrder', orderId, undefined, READS, options);
  }

  /** Notes the shop's reference or metadata with the order; `null` removes it. */
  editOrder(
    orderId: string,
    edit: Operations['editOrder']['body'],
    options?: CallOptions,
  ): Promise<OrderOutcome<'editOrder'>> {
    return this.#order('editOrder', orderId, edit, REPEATABLE, options);
  }

  pay(
    orderId: string,
    payType: PayType,
    reason = '',
    options?: CallOptions,
  ): Promise<OrderOutcome<'payOrder'>> {
    return this.#order('payOrder', orderId, { payType, reason }, REPEATABLE, options);
  }

  cancel(orderId: string, reason = '', options?: CallOptions): Promise<OrderOutcome<'cancelOrder'>> {
    return this.#order('cancelOrder', orderId, { reason }, REPEATABLE, options);
  }

  redeem(orderId: string, reason = '', options?: CallOptions): Promise<OrderOutcome<'redeemOrder'>> {
    return this.#order('redeemOrder', orderId, { reason }, REPEATABLE, options);
  }

  /** Records that the money was paid back. */
  refund(orderId: string, reason = '', options?: CallOptions): Promise<OrderOutcome<'refundOrder'>> {
    return this.#order('refundOrder', orderId, { reason }, REPEATABLE, options);
  }

  /** A page, by default of 1,000 orders, the longest due first. @param saleId if absent, of all sales */
  refundsDue(saleId?: string, { after, limit, ...options }: PageOptions = {}): Promise<Found<'refundsDue'>> {
    return this.#found('refundsDue', {}, options, { ...READS, query: { saleId, after, limit } });
  }

  /**
   * Replaces a buyer's id by a pseudonym, for good. Sales that still have the id are in `waiting`.
   */
  eraseBuyer(erasure: Operations['eraseBuyer']['body'], options?: CallOptions): Promise<Found<'eraseBuyer'>> {
    return this.#found('eraseBuyer', {}, options, { ...REPEATABLE, body: erasure });
  }

  /** A page, by default of 100, the oldest first. */
  deadLetters({ after, limit, ...options }: PageOptions = {}): Promise<Found<'deadLetters'>> {
    return this.#found('deadLetters', {}, options, { ...READS, query: { after, limit } });
  }

  /** The request is not repeated: a second one would not find the dead letter in the list any more. */
  resend(id: string, options?: CallOptions): Promise<Found<'resend'>> {
    return this.#found('resend', { id }, options, ONCE);
  }

  resendAll(options?: CallOptions): Promise<Found<'resendAll'>> {
    return this.#found('resendAll', {}, options, ONCE);
  }

  /** Whether the process answers. */
  healthz(options?: CallOptions): Promise<Found<'healthz'>> {
    return this.#found('healthz', {}, options);
  }

  /** Whether it can do its work: `status` is `ready`, or `not ready` with a `reason`. */
  async readyz(options?: CallOptions): Promise<Found<'readyz'> | NotReady> {
    return this.#found('readyz', {}, options, { ...READS, asksIfReady: true });
  }

  /** The metrics in Prometheus' text format. */
  async metrics(
    options?: CallOptions,
  ): Promise<{ readonly code: 'found'; readonly text: string } | Refused<'metrics'>> {
    const answer = await this.#call('metrics', {}, undefined, READS, options);
    return outcomeOf(answer, (text: string) => ({ code: 'found', text }));
  }

  async #sale<Of extends Name>(
    name: Of,
    params: Readonly<Record<string, string>>,
    body: unknown,
    how: How,
    options?: CallOptions,
  ): Promise<SaleOutcome<Of>> {
    const answer = await this.#call(name, params, body, how, options);
    return outcomeOf(answer, (sale: Sale) => ({ code: 'done', sale }));
  }

  async #order<Of extends Name>(
    name: Of,
    orderId: string,
    body: unknown,
    how: How,
    options?: CallOptions,
  ): Promise<OrderOutcome<Of>> {
    const answer = await this.#call(name, { orderId }, body, how, options);
    return outcomeOf(answer, (order: Order) => ({ code: 'done', order }));
  }

  async #recovery<Of extends 'recover' | 'recovery'>(
    name: Of,
    saleId: string,
    how: How,
    options?: CallOptions,
  ): Promise<RecoveryOutcome<Of>> {
    const answer = await this.#call(name, { saleId }, undefined, how, options);
    return outcomeOf(answer, (recovery: Recovery) => ({ code: 'found', recovery }));
  }

  async #deletion<Of extends 'deleteSale' | 'deletion'>(
    name: Of,
    saleId: string,
    how: How,
    options?: CallOptions,
  ): Promise<DeletionOutcome<Of>> {
    const answer = await this.#call(name, { saleId }, undefined, how, options);
    return outcomeOf(answer, (deletion: Deletion) => ({ code: 'found', deletion }));
  }

  async #found(
    name: Name,
    params: Readonly<Record<string, string>>,
    options?: CallOptions,
    { body, ...how }: How & Pick<Request, 'body'> = READS,
  ): Promise<never> {
    const answer = await this.#call(name, params, body, how, options);
    return outcomeOf(answer, (body: object) => ({ code: 'found', ...body }));
  }

  #call(
    name: Name,
    params: Readonly<Record<string, string>>,
    body: unknown,
    how: How,
    { signal }: CallOptions = {},
  ) {
    return this.#transport.call({
      route: ROUTES[name],
      params,
      body,
      headers: this.#headers,
      signal,
      ...how,
    });
  }
}

/** A node's answer with the status 503 that is not a problem document. */
export interface NotReady {
  readonly code: 'found';
  readonly status: 'not ready';
  readonly reason: string;
}

type How = Pick<Request, 'repeatable' | 'changes'> &
  Pick<Partial<Request>, 'attemptMs' | 'query' | 'asksIfReady'>;
