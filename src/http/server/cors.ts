/**
 * Lets web pages of other origins read answers (CORS, the Fetch standard). Off unless CORS_ORIGINS names them.
 *
 *   origins        every answer has `Vary: Origin`. To a named origin it also has Access-Control-Allow-Origin and -Credentials:
 *                  a gateway may know the buyer by a cookie
 *   `*`            every answer has Access-Control-Allow-Origin: *. Browsers then send no cookies and show no answer to a page
 *                  that asks for them, so a page of any origin sees only what everybody can see
 *
 * Refusals have these headers, too: otherwise a page could not read why it was refused. A preflight is answered from memory, by
 * the methods of its route, after the checks of every request (router.ts).
 */
import type { Origins } from '../../admission/origins.ts';
import type { HttpRequest } from './http-request.ts';
import { type HeadLines, headOf, linesOf, type Reply } from './replies/reply.ts';

/** What a page may send beyond what every page may. */
const ALLOWED_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Place-Token, Prefer, Purchase-Token, Traceparent, X-Buyer-Id';
/** What a page may read beyond what every page may. */
const EXPOSED_HEADERS =
  'ETag, Location, RateLimit, RateLimit-Policy, Retry-After, Traceresponse, WWW-Authenticate';
const PREFLIGHT_KEPT_S = 600;

const EVERYBODY = linesOf({
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED_HEADERS,
});
const NOBODY = linesOf({ vary: 'Origin' });

export class Cors {
  readonly #byOrigin: ReadonlyMap<string, HeadLines> | undefined;

  constructor(origins: Origins) {
    if (origins !== '*') this.#byOrigin = new Map([...origins].map((origin) => [origin, linesFor(origin)]));
  }

  /** What the answer to this request has in its head, whatever it is. */
  linesTo(request: HttpRequest): HeadLines {
    if (!this.#byOrigin) return EVERYBODY;
    return this.#byOrigin.get(request.getHeader('origin')) ?? NOBODY;
  }

  /** Whether a browser asks what a page may send, and the page may ask. */
  isPreflight(request: HttpRequest): boolean {
    if (request.getMethod() !== 'options' || request.getHeader('access-control-request-method') === '')
      return false;
    const origin = request.getHeader('origin');
    return this.#byOrigin ? this.#byOrigin.has(origin) : origin !== '';
  }
}

/** @param methods of the route, separated by commas */
export function preflightReply(methods: string): Reply {
  const head = headOf(204, {
    'access-control-allow-methods': methods,
    'access-control-allow-headers': ALLOWED_HEADERS,
    'access-control-max-age': String(PREFLIGHT_KEPT_S),
  });
  return { status: 204, head, body: '', isBodiless: true };
}

function linesFor(origin: string): HeadLines {
  return linesOf({
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': EXPOSED_HEADERS,
  });
}
