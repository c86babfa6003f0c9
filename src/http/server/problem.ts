/** Every error that a client can get, by its stable code, as `application/problem+json` (RFC 9457). */

interface Kind {
  readonly status: number;
  readonly title: string;
  /** What the client can do about it, if anything. */
  readonly detail?: string;
  readonly retryAfterS?: number;
}

const KINDS = {
  sold_out: { status: 409, title: 'Sold out' },
  limit_reached: { status: 409, title: 'This buyer holds all that the sale allows' },
  insufficient_stock: { status: 409, title: 'Fewer units remain than were asked for' },
  not_started: { status: 403, title: 'The sale has not started' },
  ended: { status: 403, title: 'The sale has ended' },
  paused: { status: 403, title: 'The sale is paused' },
  unknown_sale: { status: 404, title: 'There is no such sale' },
  unknown_order: { status: 404, title: 'There is no such order' },
  unknown_dead_letter: { status: 404, title: 'There is no such dead letter' },
  not_found: { status: 404, title: 'There is no such route' },
  method_not_allowed: { status: 405, title: 'This route does not have this method' },
  invalid_request: { status: 400, title: 'The request is not valid' },
  unauthenticated: { status: 401, title: 'The credentials are missing or not valid' },
  forbidden: { status: 403, title: 'This order belongs to another buyer' },
  operators_only: {
    status: 403,
    title: 'The public port does not accept this',
    detail:
      'Nothing was changed. The shop reports payments and redemptions at the ops port, or with `stockade order pay` and `redeem`.',
  },
  sale_exists: { status: 409, title: 'There is a sale with this id already' },
  wrong_state: { status: 409, title: 'The sale’s state does not allow this' },
  orders_differ: { status: 409, title: 'The sale has another number of orders' },
  deleting: { status: 409, title: 'A sale with this id is being deleted' },
  archived: { status: 409, title: 'The sale is archived' },
  wrong_status: { status: 409, title: 'The order’s status does not allow this' },
  expired: {
    status: 409,
    title: 'The order had expired before it was paid, and its units are no longer available',
  },
  refused: { status: 403, title: 'The shop has refused this purchase' },
  token_required: {
    status: 403,
    title: 'This sale requires a purchase token',
    detail: 'Get one with POST /v1/sales/{saleId}/tokens and send it in the header Purchase-Token.',
  },
  token_invalid: { status: 403, title: 'The purchase token is not valid' },
  challenge_required: { status: 403, title: 'Solve a challenge to get a purchase token' },
  challenge_failed: { status: 403, title: 'The solution of the challenge is wrong' },
  rate_limited: { status: 429, title: 'Too many requests' },
  idempotency_mismatch: { status: 422, title: 'This Idempotency-Key was used for another request' },
  payload_too_large: { status: 413, title: 'The body is too large' },
  busy: {
    status: 503,
    title: 'This node has more requests than it may queue',
    detail: 'Nothing was taken. Send the request again.',
    retryAfterS: 1,
  },
  unavailable: {
    status: 503,
    title: 'The stock can’t be reached now',
    detail: 'Nothing was taken. Send the request again.',
    retryAfterS: 1,
  },
  unknown: {
    status: 503,
    title: 'It is not known yet how this purchase ended',
    detail: 'Send the request again with the same Idempotency-Key: the answer tells how it ended.',
    retryAfterS: 1,
  },
  internal: { status: 500, title: 'There was a fault in the server' },
} as const satisfies Record<string, Kind>;

export type ProblemCode = keyof typeof KINDS;
export const PROBLEM_CODES = Object.keys(KINDS) as readonly ProblemCode[];

/** Status line and headers, in the forms that the two servers need. */
export interface Head {
  /** For uWebSockets.js, in one piece: a call for each header would cost more than all else in a refusal. */
  readonly text: string;
  /** The same, encoded: uWebSockets.js copies bytes faster than it encodes a string. */
  readonly bytes: Uint8Array;
  readonly reason: string;
  /** For `node:http`: names and values in turn. */
  readonly fields: readonly string[];
}

/** A response ready to be written. */
export interface Reply {
  readonly status: number;
  /** From `headOf`. */
  readonly head: Head;
  readonly body: string;
  /** The same, encoded; only in replies that are sent many times. */
  readonly bytes?: Uint8Array;
}

/** For a reply that is sent many times: encodes its body once. */
export function sentOften(reply: Reply): Reply {
  return { ...reply, bytes: Buffer.from(reply.body) };
}

/** Every status that an answer can have. */
type Status = 200 | 201 | 202 | (typeof KINDS)[ProblemCode]['status'];

const REASONS: Readonly<Record<Status, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** @param headers their values must not come from a client: nothing is escaped */
export function headOf(status: Status, headers: Readonly<Record<string, string>>): Head {
  const reason = REASONS[status];
  const lines = Object.entries(headers).map(([name, value]) => `\r\n${name}: ${value}`);
  const text = `${status} ${reason}${lines.join('')}`;
  return { text, bytes: Buffer.from(text), reason, fields: Object.entries(headers).flat() };
}

/** A response of any length, whose pieces are made while the client reads. Its end also closes the connection. */
export interface PiecedReply extends Omit<Reply, 'body'> {
  /** If it throws, the connection is closed without the end of the response. */
  readonly pieces: AsyncIterable<string>;
}

export function json(status: Status, value: unknown): Reply {
  return {
    status,
    head: headOf(status, { 'content-type': 'application/json' }),
    body: JSON.stringify(value),
  };
}

/**
 * @param more further members of the body, such as `detail`, or values to act on
 * @param headers in addition to those of the code
 */
export function problem(
  code: ProblemCode,
  more: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const { status } = KINDS[code];
  const { title, detail, retryAfterS }: Kind = KINDS[code];
  // A missing `type` means "about:blank". The code identifies the error, and the many refusals stay short.
  const body = { title, status, code, ...(detail && { detail }), ...more };
  const head = headOf(status, {
    'content-type': 'application/problem+json',
    ...(retryAfterS !== undefined && { 'retry-after': String(retryAfterS) }),
    ...headers,
  });
  return { status, head, body: JSON.stringify(body) };
}

export function isProblemCode(code: string): code is ProblemCode {
  return code in KINDS;
}
