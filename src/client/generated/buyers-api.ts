/** Generated from docs/openapi.json by scripts/generate-client.mjs. Change the description, then run `npm run generate`. */

interface Problem<Code extends string> {
  readonly code: Code;
  /** Where the port explains the code, relative to its address. Left out if no answer came. */
  readonly type?: string;
  readonly title: string;
  /** The status of the HTTP answer; 0 if no answer came. */
  readonly status: number;
  readonly detail?: string;
}

export type SaleId = string;

/** Up to 63 bits: more than a JavaScript number holds */
export type OrderId = string;

export type Placed = {
  readonly orderId: OrderId;
  readonly status: 'committed' | 'accepted';
  readonly saleId: SaleId;
  readonly quantity: number;
};

export type PurchaseToken = {
  readonly token: string;
  readonly saleId: SaleId;
  readonly expiresAt: string;
};

export type PublicSale = {
  readonly id: SaleId;
  readonly title: string;
  readonly state: 'scheduled' | 'open' | 'paused' | 'ended';
  readonly startsAt: string;
  readonly endsAt?: string | undefined;
  readonly perBuyerLimit: number;
  /** Left out if a purchase needs no token */
  readonly requireToken?: true | undefined;
  /** Left out if the sale has no queue */
  readonly queue?: {
    readonly order: 'fifo' | 'draw';
    /** How long an offer can be accepted */
    readonly offerSeconds: number;
    /** A buyer that asks for its place no more is absent after this time. 0: nobody is ever absent */
    readonly presenceSeconds: number;
    /** Only with draw */
    readonly draw?: {
      /** SHA-256 of the seed, in hexadecimal */
      readonly commitment: string;
      /** Only after the draw */
      readonly seed?: string | undefined;
      /** How many places took part. Only after the draw */
      readonly entries?: number | undefined;
      /** Of the entries. Only after the draw */
      readonly entriesHash?: string | undefined;
    } | undefined;
  } | undefined;
  readonly priceMinor?: number | undefined;
  readonly faceValueMinor?: number | undefined;
  readonly currency?: string | undefined;
  readonly soldOut?: boolean | undefined;
  readonly remaining?: number | undefined;
};

export type Order = {
  readonly orderId: OrderId;
  readonly saleId: SaleId;
  readonly quantity: number;
  readonly status: 'offered' | 'unpaid' | 'paid' | 'redeemed' | 'cancelled' | 'expired' | 'refunded' | 'rejected' | 'accepted';
  readonly payType?: 'balance' | 'alipay' | 'wechat' | 'card' | 'other' | undefined;
  readonly committedAt?: string | undefined;
  readonly expiresAt?: string | undefined;
  readonly paidAt?: string | undefined;
  readonly redeemedAt?: string | undefined;
  readonly cancelledAt?: string | undefined;
  readonly expiredAt?: string | undefined;
  readonly refundedAt?: string | undefined;
  readonly refundDue?: true | undefined;
  readonly retakenBy?: OrderId | undefined;
  readonly retaken?: true | undefined;
  readonly replaces?: OrderId | undefined;
};

export type Place = {
  readonly saleId: SaleId;
  /** Counts from 1 in each sale, in the order in which places were given */
  readonly number: number;
  /** Units that the place wants */
  readonly quantity: number;
  /** hopeless: it waits, and the present buyers before it could take all units that are free or offered. lapsed: the offer was not accepted in time. closed: it still waited when the sale ended, or when its queue was turned off */
  readonly state: 'waiting' | 'hopeless' | 'offered' | 'bought' | 'lapsed' | 'left' | 'closed';
  /** Why it has left */
  readonly reason?: 'asked' | 'absent' | 'limit' | undefined;
  /** Its turn, from 1 on. Only while it waits, and not before a draw */
  readonly rank?: number | undefined;
  /** How many take part in the draw so far. Only before the draw */
  readonly entries?: number | undefined;
  /** Proves that the entry in the draw is this buyer’s. Only while the place waits; never in the stream, nor in most answers to a request with Place-Token */
  readonly salt?: string | undefined;
  /** Present buyers ahead. Only while it waits, and not before a draw */
  readonly ahead?: number | undefined;
  /** How long it will wait if offers go on as in the last minute. Left out if too little is known */
  readonly estimateSeconds?: number | undefined;
  /** The standard error of the estimate */
  readonly estimateErrorSeconds?: number | undefined;
  /** For the header Place-Token */
  readonly placeToken: string;
  readonly offer?: {
    /** For the header Purchase-Token of the purchase */
    readonly token: string;
    readonly orderId: OrderId;
    /** Units that are offered; may be fewer than the place wants. The purchase must ask for so many */
    readonly quantity: number;
    readonly expiresAt?: string | undefined;
  } | undefined;
};

/** The problems by code, each with the members that it has. */
export interface Problems {
  sold_out: Problem<'sold_out'>;
  limit_reached: Problem<'limit_reached'> & { readonly limit: number; readonly orderIds: readonly (OrderId)[] };
  insufficient_stock: Problem<'insufficient_stock'> & { readonly remaining: number };
  not_started: Problem<'not_started'> & { readonly startsAt: string };
  ended: Problem<'ended'> & { readonly endedAt?: string };
  paused: Problem<'paused'>;
  unknown_sale: Problem<'unknown_sale'>;
  unknown_order: Problem<'unknown_order'>;
  not_found: Problem<'not_found'>;
  method_not_allowed: Problem<'method_not_allowed'>;
  invalid_request: Problem<'invalid_request'>;
  unauthenticated: Problem<'unauthenticated'> & { readonly reason: 'missing' | 'invalid' | 'expired' | 'generation' | 'alien' };
  forbidden: Problem<'forbidden'>;
  operators_only: Problem<'operators_only'>;
  wrong_state: Problem<'wrong_state'> & { readonly state: string };
  wrong_status: Problem<'wrong_status'> & { readonly orderStatus: string };
  expired: Problem<'expired'> & { readonly refundDue: boolean };
  refused: Problem<'refused'>;
  token_required: Problem<'token_required'>;
  token_invalid: Problem<'token_invalid'> & { readonly reason: 'missing' | 'invalid' | 'expired' | 'generation' | 'alien' };
  offer_required: Problem<'offer_required'>;
  offer_ended: Problem<'offer_ended'>;
  no_queue: Problem<'no_queue'>;
  no_place: Problem<'no_place'>;
  queue_full: Problem<'queue_full'>;
  challenge_required: Problem<'challenge_required'> & { readonly challenge: unknown };
  challenge_failed: Problem<'challenge_failed'>;
  rate_limited: Problem<'rate_limited'> & { readonly limitOf: 'buyer' | 'address' };
  idempotency_mismatch: Problem<'idempotency_mismatch'> & { readonly orderId: OrderId; readonly quantity: number };
  payload_too_large: Problem<'payload_too_large'>;
  busy: Problem<'busy'>;
  unavailable: Problem<'unavailable'>;
  unknown: Problem<'unknown'>;
  internal: Problem<'internal'>;
}

export const CODES: readonly string[] = [
  'sold_out',
  'limit_reached',
  'insufficient_stock',
  'not_started',
  'ended',
  'paused',
  'unknown_sale',
  'unknown_order',
  'not_found',
  'method_not_allowed',
  'invalid_request',
  'unauthenticated',
  'forbidden',
  'operators_only',
  'wrong_state',
  'wrong_status',
  'expired',
  'refused',
  'token_required',
  'token_invalid',
  'offer_required',
  'offer_ended',
  'no_queue',
  'no_place',
  'queue_full',
  'challenge_required',
  'challenge_failed',
  'rate_limited',
  'idempotency_mismatch',
  'payload_too_large',
  'busy',
  'unavailable',
  'unknown',
  'internal',
];

export interface Operations {
  buy: {
    readonly body: {
      readonly quantity?: number | undefined;
      /** What the shop calls the order, only with PUBLIC_ORDER_NOTES=1. A repeated purchase keeps that of the first */
      readonly reference?: string | undefined;
      /** What the shop notes with the order, only with PUBLIC_ORDER_NOTES=1: at most 4,096 bytes as JSON, nested at most 32 deep. Numbers that JavaScript would round are refused: whole ones beyond 2^53 - 1 and, as a rule, others of more than 15 digits. A repeated purchase keeps that of the first */
      readonly metadata?: Readonly<Record<string, unknown>> | undefined;
    };
    readonly answer: Placed;
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'operators_only' | 'not_started' | 'ended' | 'paused' | 'refused' | 'token_required' | 'token_invalid' | 'offer_required' | 'unknown_sale' | 'sold_out' | 'limit_reached' | 'insufficient_stock' | 'offer_ended' | 'payload_too_large' | 'idempotency_mismatch' | 'rate_limited' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  ownOrdersOfSale: {
    readonly body: undefined;
    readonly answer: {
      readonly orders: readonly (Order)[];
      readonly next?: string | undefined;
    };
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'unknown_sale' | 'rate_limited' | 'internal' | 'busy' | 'unavailable';
  };
  getPurchaseToken: {
    readonly body: {
      /** The solution of the challenge. Without a body, the answer is a challenge */
      readonly answer?: unknown | undefined;
    };
    readonly answer: PurchaseToken;
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'not_started' | 'challenge_required' | 'challenge_failed' | 'unknown_sale' | 'payload_too_large' | 'rate_limited' | 'internal' | 'busy' | 'unavailable';
  };
  takePlace: {
    readonly body: {
      readonly quantity?: number | undefined;
    };
    readonly answer: Place;
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'ended' | 'token_required' | 'token_invalid' | 'unknown_sale' | 'limit_reached' | 'no_queue' | 'payload_too_large' | 'rate_limited' | 'internal' | 'busy' | 'unavailable' | 'queue_full';
  };
  readPlace: {
    readonly body: undefined;
    readonly answer: Place;
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'unknown_sale' | 'no_place' | 'rate_limited' | 'internal' | 'busy' | 'unavailable';
  };
  leavePlace: {
    readonly body: undefined;
    readonly answer: Place;
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'unknown_sale' | 'no_place' | 'rate_limited' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  followPlace: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'unknown_sale' | 'no_place' | 'rate_limited' | 'internal' | 'busy' | 'unavailable';
  };
  readSale: {
    readonly body: undefined;
    readonly answer: PublicSale;
    readonly code: 'unknown_sale' | 'rate_limited' | 'internal' | 'busy' | 'unavailable';
  };
  followSale: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'unknown_sale' | 'rate_limited' | 'internal' | 'busy' | 'unavailable';
  };
  ownOrders: {
    readonly body: undefined;
    readonly answer: {
      readonly orders: readonly (Order)[];
      readonly next?: string | undefined;
    };
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'rate_limited' | 'internal' | 'busy' | 'unavailable';
  };
  readOrder: {
    readonly body: undefined;
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'unknown_order' | 'rate_limited' | 'internal' | 'busy' | 'unavailable';
  };
  payOrder: {
    readonly body: {
      readonly payType: 'balance' | 'alipay' | 'wechat' | 'card' | 'other';
    };
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'operators_only' | 'forbidden' | 'unknown_order' | 'wrong_status' | 'expired' | 'wrong_state' | 'payload_too_large' | 'rate_limited' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  cancelOrder: {
    readonly body: {

    };
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'forbidden' | 'unknown_order' | 'wrong_status' | 'payload_too_large' | 'rate_limited' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  redeemOrder: {
    readonly body: {

    };
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'operators_only' | 'forbidden' | 'unknown_order' | 'wrong_status' | 'payload_too_large' | 'rate_limited' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  openApi: {
    readonly body: undefined;
    readonly answer: {
      readonly openapi: string;
      readonly info: Readonly<Record<string, unknown>>;
      readonly paths: Readonly<Record<string, unknown>>;
    };
    readonly code: 'invalid_request' | 'rate_limited' | 'internal' | 'busy';
  };
  docsPage: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'rate_limited' | 'internal' | 'busy';
  };
  problemsPage: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'rate_limited' | 'internal' | 'busy';
  };
  problemPage: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'not_found' | 'rate_limited' | 'internal' | 'busy';
  };
}

/** Method, path, and a member that the answer always has. Without such a member, the answer is a text. */
export const ROUTES = {
  buy: ['POST', '/v1/sales/{saleId}/orders', 'orderId'],
  ownOrdersOfSale: ['GET', '/v1/sales/{saleId}/orders', 'orders'],
  getPurchaseToken: ['POST', '/v1/sales/{saleId}/tokens', 'token'],
  takePlace: ['POST', '/v1/sales/{saleId}/place', 'saleId'],
  readPlace: ['GET', '/v1/sales/{saleId}/place', 'saleId'],
  leavePlace: ['DELETE', '/v1/sales/{saleId}/place', 'saleId'],
  followPlace: ['GET', '/v1/sales/{saleId}/place/events'],
  readSale: ['GET', '/v1/sales/{saleId}', 'id'],
  followSale: ['GET', '/v1/sales/{saleId}/events'],
  ownOrders: ['GET', '/v1/orders', 'orders'],
  readOrder: ['GET', '/v1/orders/{orderId}', 'orderId'],
  payOrder: ['POST', '/v1/orders/{orderId}/pay', 'orderId'],
  cancelOrder: ['POST', '/v1/orders/{orderId}/cancel', 'orderId'],
  redeemOrder: ['POST', '/v1/orders/{orderId}/redeem', 'orderId'],
  openApi: ['GET', '/openapi.json', 'openapi'],
  docsPage: ['GET', '/docs'],
  problemsPage: ['GET', '/problems'],
  problemPage: ['GET', '/problems/{code}'],
} as const;
