/**
 * The one table of codes: what each problem means, and what a client should do about it. The answers (problem.ts), the pages at
 * `/problems` (http/description/problem-pages.ts) and the examples in docs/openapi*.json (`npm run generate`) are made from it.
 */

export interface Kind {
  readonly status: number;
  /** The same in every answer with this code, as RFC 9457 asks for. What differs is in `detail`. */
  readonly title: string;
  /** The detail of an answer that has none of its own. */
  readonly detail?: string;
  /** Seconds after which the client may repeat the request. */
  readonly retryAfterS?: number;
  /** When the code comes. */
  readonly means: string;
  /** What the client should do. */
  readonly remedy: string;
  /** Members of an example answer, beside `type`, `title`, `status` and `code`. */
  readonly example?: Readonly<Record<string, unknown>>;
}

const LATER_WITH_KEY =
  'Send the request again after the seconds in Retry-After and a short random time, with the same Idempotency-Key.';

export const KINDS = {
  sold_out: {
    status: 409,
    title: 'Sold out',
    means: 'No units of the sale are left.',
    remedy:
      'Tell the buyer. It is final for now: units come back when orders are cancelled, refunded or expire, or when the shop adds some.',
  },
  limit_reached: {
    status: 409,
    title: 'This buyer holds all that the sale allows',
    means: 'With this purchase the buyer would hold more units than the sale allows to one buyer.',
    remedy:
      'Do not repeat it. `limit` is the most that one buyer may hold, `orderIds` are the orders that this buyer holds: show them.',
    example: { limit: 1, orderIds: ['662207995405477814'] },
  },
  insufficient_stock: {
    status: 409,
    title: 'Fewer units remain than were asked for',
    means: 'The sale has fewer units left than the request asks for, and a request gets all of them or none.',
    remedy: 'Ask for `remaining` units or fewer.',
    example: { remaining: 1 },
  },
  not_started: {
    status: 403,
    title: 'The sale has not started',
    means: 'The sale starts later.',
    remedy: 'Send the request again after the time in `startsAt`.',
    example: { startsAt: '2026-11-27T19:00:00.000Z' },
  },
  ended: {
    status: 403,
    title: 'The sale has ended',
    means: 'The sale is over, or an operator has closed it.',
    remedy: 'Do not repeat the request. `endedAt` is the end of the sale, if it has one.',
    example: { endedAt: '2026-11-27T20:00:00.000Z' },
  },
  paused: {
    status: 403,
    title: 'The sale is paused',
    means: 'An operator has paused the sale.',
    remedy: 'Send the request again later.',
  },
  unknown_sale: {
    status: 404,
    title: 'There is no such sale',
    means: 'No sale has the id in the request.',
    remedy: 'Check the id. A sale that was created a moment ago may not be known everywhere yet.',
  },
  unknown_order: {
    status: 404,
    title: 'There is no such order',
    means: 'No order has the id in the request.',
    remedy: 'Check the id: it is a string of digits, longer than a JavaScript number can hold.',
  },
  unknown_dead_letter: {
    status: 404,
    title: 'There is no such dead letter',
    means: 'No dead letter has this id, or it was sent already.',
    remedy: 'Read the list of dead letters again.',
    example: { detail: 'there is no dead letter 17; it may have been re-sent already' },
  },
  not_found: {
    status: 404,
    title: 'There is no such route',
    means: 'This port has no route for the path of the request.',
    remedy:
      'Compare the path with the description of this port, /openapi.json. The other port has other routes.',
  },
  method_not_allowed: {
    status: 405,
    title: 'This route does not have this method',
    means: 'The path exists, with other methods.',
    remedy: 'Use a method that the header Allow names.',
    example: { detail: 'use GET' },
  },
  invalid_request: {
    status: 400,
    title: 'The request is not valid',
    means: 'A header, a parameter or the body of the request is not as described. Nothing was done.',
    remedy:
      'Do not repeat it unchanged. `detail` says what is wrong; the ops port lists all faults in `faults`.',
    example: { detail: 'quantity must be a whole number from 1' },
  },
  unauthenticated: {
    status: 401,
    title: 'The credentials are missing or not valid',
    means: 'The request does not prove who sends it. `reason` is `missing`, `invalid` or `expired`.',
    remedy:
      'If the reason is `expired`, get a new token and repeat the request. Otherwise sign in; the header WWW-Authenticate names the scheme.',
    example: { reason: 'missing', detail: 'Authorization must be "Bearer <token>"' },
  },
  forbidden: {
    status: 403,
    title: 'The buyer may not do this',
    detail: 'The order belongs to another buyer.',
    means:
      'The order belongs to another buyer. Without a gateway it may also be that the header Host or Origin names another machine.',
    remedy: 'Do not repeat it. `detail` says which of the two it is.',
  },
  operators_only: {
    status: 403,
    title: 'The public port does not accept this',
    detail:
      'Nothing was changed. The shop reports payments and redemptions at the ops port, or with `stockade order pay` and `redeem`.',
    means:
      'Only the shop may report payments and redemptions, and only the shop may store a reference or metadata.',
    remedy:
      'Send it to the ops port. PUBLIC_PAYMENT=1 and PUBLIC_ORDER_NOTES=1 change what this port accepts.',
  },
  sale_exists: {
    status: 409,
    title: 'There is a sale with this id already',
    means: 'The id of the new sale is taken.',
    remedy: 'Read the existing sale, or choose another id.',
    example: { detail: 'there is a sale tickets already; choose another id, or show it' },
  },
  wrong_state: {
    status: 409,
    title: 'The sale’s state does not allow this',
    means: 'The sale is in another state than the change needs. `state` is the present one.',
    remedy:
      'Change the state first, or leave it. A late payment at a paused sale is reported again once it is resumed.',
    example: { detail: "sale tickets is closed; it can't be resumed", state: 'closed' },
  },
  orders_differ: {
    status: 409,
    title: 'The sale has another number of orders',
    means: 'The request to delete a sale names another number of orders than the sale has.',
    remedy: 'Export the orders, then repeat the request with the number in `orders`.',
    example: {
      detail: 'sale tickets has 2 orders: export them, and then delete the sale with them',
      orders: 2,
    },
  },
  deleting: {
    status: 409,
    title: 'A sale with this id is being deleted',
    means: 'The deletion of an older sale with this id is under way.',
    remedy: 'Create the sale when the deletion is done, or choose another id.',
    example: { detail: 'a sale tickets is being deleted: create this one when that has ended' },
  },
  archived: {
    status: 409,
    title: 'The sale is archived',
    means: 'An archived sale can only be read or deleted.',
    remedy: 'Do not repeat it.',
    example: {
      detail:
        'sale tickets is archived: its orders can be listed and changed, but nothing can be done with its stock; create a new sale',
    },
  },
  wrong_status: {
    status: 409,
    title: 'The order’s status does not allow this',
    means: 'The order is in another status than the change needs. `orderStatus` is the present one.',
    remedy:
      'If it is `accepted`, the order is not in Postgres yet: repeat the request after the seconds in Retry-After. Otherwise do not repeat it.',
    example: { orderStatus: 'cancelled' },
  },
  expired: {
    status: 409,
    title: 'The order had expired before it was paid, and its units are no longer available',
    means: 'The payment came after the order had expired, and its units could not be taken again.',
    remedy: 'It is final. `refundDue` tells whether the shop still has to pay the money back.',
    example: { refundDue: true },
  },
  refused: {
    status: 403,
    title: 'The shop has refused this purchase',
    means: 'The shop’s own code has refused the order. `detail` is its reason.',
    remedy: 'Show the reason to the buyer.',
    example: { detail: 'one order for each household' },
  },
  token_required: {
    status: 403,
    title: 'This sale requires a purchase token',
    detail: 'Get one with POST /v1/sales/{saleId}/tokens and send it in the header Purchase-Token.',
    means: 'The sale sells only to buyers that send a purchase token, and the request has none.',
    remedy: 'Get a token, and repeat the purchase with it and the same Idempotency-Key.',
  },
  token_invalid: {
    status: 403,
    title: 'The purchase token is not valid',
    means:
      'The purchase token can’t be used. `reason` is `expired`, `generation` (the sale was rebuilt since) or `alien` (made for another buyer, sale or shop).',
    remedy: 'Get another token, and repeat the purchase with it and the same Idempotency-Key.',
    example: {
      detail: 'It has expired. Get another with POST /v1/sales/{saleId}/tokens.',
      reason: 'expired',
    },
  },
  offer_required: {
    status: 403,
    title: 'This sale has a queue',
    detail: 'Get a place with POST /v1/sales/{saleId}/place. The place gets an offer when it is its turn.',
    means: 'The sale sells only to places of its queue that have an offer, and the request has no offer.',
    remedy: 'Get a place, wait for its offer, and send the token of the offer in the header Purchase-Token.',
  },
  offer_ended: {
    status: 409,
    title: 'The offer has ended',
    means:
      'The offer was not accepted in time, or was given back. Or it was accepted, and its order has ended since. Its units go to the next place.',
    remedy: 'It is final. Get another place with POST /v1/sales/{saleId}/place.',
  },
  no_queue: {
    status: 409,
    title: 'This sale has no queue',
    means: 'The sale gives no places: its buyers buy at once.',
    remedy: 'Buy with POST /v1/sales/{saleId}/orders.',
  },
  no_place: {
    status: 404,
    title: 'This buyer has no place',
    means: 'The buyer never had a place in the queue of this sale.',
    remedy: 'Get one with POST /v1/sales/{saleId}/place.',
  },
  queue_full: {
    status: 503,
    title: 'The queue is full',
    detail: 'No place was given. Send the request again later.',
    retryAfterS: 30,
    means: 'As many buyers wait as the shop lets wait in this sale.',
    remedy:
      'Send the request again after the seconds in Retry-After and a random time. Places become free as the queue moves.',
  },
  challenge_required: {
    status: 403,
    title: 'Solve a challenge to get a purchase token',
    means: 'A token is issued only to buyers that have solved a challenge.',
    remedy: 'Solve `challenge`, then send the solution as `answer`.',
    example: {
      detail: 'Solve the challenge and send the solution as `answer`.',
      challenge: {
        type: 'proof-of-work',
        algorithm: 'SHA-256',
        bits: 18,
        seed: '1.1795296315.q0pVxW2m6jA.T5cFv0pX1zq9YH6o',
        expiresAt: '2026-11-21T22:05:15.000Z',
      },
    },
  },
  challenge_failed: {
    status: 403,
    title: 'The solution of the challenge is wrong',
    means: 'The `answer` does not solve the challenge, or the challenge is too old.',
    remedy: 'Send the request without `answer` to get another challenge.',
    example: { detail: 'Send the request without `answer` to get another challenge.' },
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    means:
      'The buyer or the address has sent more requests than the shop allows. `limitOf` says which. The request changed nothing.',
    remedy: 'Send the request again after the seconds in Retry-After.',
    example: {
      detail:
        'This node allows one buyer 10 requests in 60 s, and 10 at once. The request changed nothing. Send it again after the seconds in Retry-After.',
      limitOf: 'buyer',
    },
  },
  idempotency_mismatch: {
    status: 422,
    title: 'This Idempotency-Key was used for another request',
    means:
      'The buyer has bought in this sale with the same key and another quantity. `orderId` and `quantity` are those of that order.',
    remedy: 'Use a new key for a new purchase.',
    example: { orderId: '662207995405477814', quantity: 2 },
  },
  payload_too_large: {
    status: 413,
    title: 'The body is too large',
    means: 'The body of the request is longer than this route accepts. Nothing was done.',
    remedy: 'Send less. `detail` names the limit.',
    example: { detail: 'the body may have 4096 bytes at most' },
  },
  busy: {
    status: 503,
    title: 'This node has too much to do',
    detail: 'Nothing was taken. Send the request again.',
    retryAfterS: 1,
    means: 'The node has too much to do, and has refused the request before it did anything for it.',
    remedy: LATER_WITH_KEY,
  },
  unavailable: {
    status: 503,
    title: 'This can’t be done now',
    detail: 'Nothing was taken. Send the request again.',
    retryAfterS: 1,
    means:
      'A store does not answer, or the sale is being rebuilt. At the public port this request took and changed nothing; at the ops port `detail` says whether a change may have been made.',
    remedy: LATER_WITH_KEY,
  },
  unknown: {
    status: 503,
    title: 'It is not known yet how this request ended',
    detail: 'Send the request again with the same Idempotency-Key: the answer tells how it ended.',
    retryAfterS: 1,
    means: 'The deadline came while the purchase or the change was under way: it may have been made.',
    remedy:
      'Send the same request again, a purchase with the same Idempotency-Key. It does not take effect twice, and its answer tells how it ended.',
  },
  internal: {
    status: 500,
    title: 'There was a fault in the server',
    means: 'A fault of Stockade; the node’s log has the reason. The request may have taken effect.',
    remedy: 'Do as for `unknown`: send the same request again with the same Idempotency-Key.',
  },
} as const satisfies Record<string, Kind>;

export type ProblemCode = keyof typeof KINDS;
export const PROBLEM_CODES = Object.keys(KINDS) as readonly ProblemCode[];

export function isProblemCode(code: string): code is ProblemCode {
  return Object.hasOwn(KINDS, code);
}

/** @returns the row of a code, typed as any row */
export function kindOf(code: ProblemCode): Kind {
  return KINDS[code];
}

/** Where the port that gives an answer explains it: a reference relative to the answer's address (RFC 9457, 3.1.1). */
export function typeOf(code: ProblemCode): string {
  return `/problems/${code}`;
}
