import { errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../../engine/limits.ts';
import type { HttpRequest } from '../server/http-request.ts';
import { type ProblemCode, problem, type Reply } from '../server/problem.ts';
import { bearerToken, CheckedTokens, digestOf, isCompact } from './bearer-token.ts';
import { publishedKeys } from './key-set.ts';
import { type Refused, unauthenticated } from './unauthenticated.ts';

/** How this port wants to be told: names the challenge of a 401. */
type Scheme = 'Bearer' | 'X-Buyer-Id';

/** Who a request is from, what is wrong with what it says of that, or why that can't be checked now. */
export type Identity =
  | { readonly buyerId: string }
  | { readonly refused: Refused; readonly scheme: Scheme }
  /** It says so more than once, and perhaps not the same. */
  | { readonly ambiguous: string }
  | { readonly unavailable: string }
  /** A web page of another site may be behind it (local-site.ts). */
  | { readonly elsewhere: string }
  /** Known, and asks more than he may. */
  | { readonly limited: Reply };

/** Reads the request at once; what it says may take time to check. Never rejects: not every caller waits for it. */
export type Authenticate = (request: HttpRequest) => Identity | Promise<Identity>;

const NO_HEADER = refusedBy('X-Buyer-Id', 'missing', 'X-Buyer-Id is missing');
const ID_FORM = `must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces`;
const BAD_HEADER = refusedBy('X-Buyer-Id', 'invalid', `X-Buyer-Id ${ID_FORM}`);
const BAD_SUBJECT = refusedBy('Bearer', 'invalid', `the claim sub of the token ${ID_FORM}`);

function refusedBy(scheme: Scheme, reason: Refused['reason'], detail: string): Identity {
  return { refused: { reason, detail }, scheme };
}

/**
 * `X-Buyer-Id`, as a trusted gateway sets it. uWS takes bytes beyond ASCII at the ends of a header for white space and
 * drops them: to keep `caf` and `café` apart is the gateway's task, or that of a token.
 */
export function headerIdentity(): Authenticate {
  return (request) => {
    const buyerId = request.getHeader('x-buyer-id');
    return buyerId === '' ? NO_HEADER : checked(buyerId, BAD_HEADER);
  };
}

const WHO_ASKS = new Set(['x-buyer-id', 'authorization']);

/**
 * Refuses who names himself more than once: which of the two a gateway has set can't be seen, and the first would count. To
 * look costs 75 ns for each header of the request, too much for a purchase.
 */
export function unambiguous(authenticate: Authenticate): Authenticate {
  return (request) => {
    const twice = repeatedName(request);
    return twice === undefined ? authenticate(request) : { ambiguous: `${twice} came more than once` };
  };
}

function repeatedName(request: HttpRequest): string | undefined {
  const seen = new Set<string>();
  let twice: string | undefined;
  request.forEach((name) => {
    if (!WHO_ASKS.has(name)) return;
    if (seen.has(name)) twice = name;
    seen.add(name);
  });
  return twice;
}

export interface JwtOptions {
  /** HS256 secret, or the URL of a key set for asymmetric algorithms: one of the two. */
  readonly secret: string | undefined;
  readonly jwksUrl: string | undefined;
  readonly audience: string | undefined;
  readonly issuer: string | undefined;
  /** How long the fetching of the key set may take. */
  readonly timeoutMs: number;
}

const ASYMMETRIC = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const MISSING = refusedBy('Bearer', 'missing', 'Authorization must be "Bearer <token>"');
const MALFORMED = refusedBy(
  'Bearer',
  'invalid',
  'the token is not valid: it must be a signed JWT, three parts in base64url without padding, and nothing behind it',
);
/** The answer does not say what was wrong: a forger would learn from it. */
const FORGED = refusedBy(
  'Bearer',
  'invalid',
  'the token is not valid: it is not signed with a key of this shop',
);
const EXPIRED = refusedBy('Bearer', 'expired', 'the token has expired: get a new one');
const CLOCK_TOLERANCE_S = 5;
const UNCHECKED: Identity = { unavailable: 'Who this is from can’t be checked now. Nothing was taken.' };
/** The key set could not be fetched, or is none: nothing is known of the token. */
const KEY_SET_FAULTS = ['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID'];
/** A key set that can't be had is reported once in this time, not for every request. */
const REPORT_EVERY_MS = 10_000;

/**
 * A bearer token whose claim `sub` names the buyer. The algorithm follows from the key, never from the token.
 * @param fault told why tokens can't be checked
 */
export function jwtIdentity(
  { secret, jwksUrl, audience, issuer, timeoutMs }: JwtOptions,
  fault: (error: unknown) => void,
): Authenticate {
  const key: Uint8Array | JWTVerifyGetKey =
    secret !== undefined ? new TextEncoder().encode(secret) : publishedKeys(new URL(jwksUrl!), timeoutMs);
  const options = {
    algorithms: secret !== undefined ? ['HS256'] : ASYMMETRIC,
    requiredClaims: ['sub', 'exp'],
    clockTolerance: CLOCK_TOLERANCE_S,
    ...(audience !== undefined && { audience }),
    ...(issuer !== undefined && { issuer }),
  };
  const good = new CheckedTokens<Identity>();
  let reportedMs = Number.NEGATIVE_INFINITY;

  async function verify(token: string, digest: string): Promise<Identity> {
    try {
      const { payload } = await jwtVerify(token, key as JWTVerifyGetKey, options);
      const identity = checked(payload.sub, BAD_SUBJECT);
      good.set(digest, identity, (payload.exp! + CLOCK_TOLERANCE_S) * 1_000);
      return identity;
    } catch (error) {
      if (error instanceof errors.JOSEError && !KEY_SET_FAULTS.includes(error.code)) return refusedFor(error);
      if (performance.now() > reportedMs + REPORT_EVERY_MS) {
        reportedMs = performance.now();
        fault(error);
      }
      return UNCHECKED;
    }
  }

  return (request) => {
    const token = bearerToken(request.getHeader('authorization'));
    if (token === undefined) return MISSING;
    const digest = digestOf(token);
    // What is known was well-formed.
    return good.get(digest) ?? (isCompact(token) ? verify(token, digest) : MALFORMED);
  };
}

/** Claims are looked at only behind a genuine signature: to name the one that is wrong helps nobody who can't sign. */
function refusedFor(error: errors.JOSEError): Identity {
  if (error instanceof errors.JWTExpired && error.claim === 'exp') return EXPIRED;
  if (!(error instanceof errors.JWTClaimValidationFailed)) return FORGED;
  return refusedBy('Bearer', 'invalid', `the token is not valid: ${error.message}`);
}

/**
 * @param buyerId as it was said: a claim may be anything that JSON can hold
 * @param otherwise what is answered if it can't be a buyer's id
 */
function checked(buyerId: unknown, otherwise: Identity): Identity {
  return typeof buyerId === 'string' && ID_PATTERN.test(buyerId) ? { buyerId } : otherwise;
}

const FOREIGN_SITE = 'The request may be a web page’s of another site';

/** What is answered to somebody who is not let in. */
export function refusal(identity: Exclude<Identity, { buyerId: string }>): {
  code: ProblemCode;
  reply: Reply;
} {
  if ('limited' in identity) return { code: 'rate_limited', reply: identity.limited };
  if ('elsewhere' in identity)
    return {
      code: 'forbidden',
      reply: problem('forbidden', { title: FOREIGN_SITE, detail: identity.elsewhere }),
    };
  if ('ambiguous' in identity)
    return { code: 'invalid_request', reply: problem('invalid_request', { detail: identity.ambiguous }) };
  return 'refused' in identity
    ? { code: 'unauthenticated', reply: unauthenticated(identity.scheme, identity.refused) }
    : { code: 'unavailable', reply: problem('unavailable', { detail: identity.unavailable }) };
}
