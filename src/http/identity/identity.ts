import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose';
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../../engine/limits.ts';
import { seldom } from '../../lib/seldom.ts';
import type { HttpRequest } from '../server/http-request.ts';
import { problem } from '../server/replies/problem.ts';
import type { ProblemCode } from '../server/replies/problem-kinds.ts';
import type { CountedReply } from '../server/replies/reply.ts';
import { bearerToken, CheckedTokens, digestOf, isCompact } from './bearer-token.ts';
import { publishedKeys, verifyPublished } from './key-set.ts';
import { type Refused, unauthenticated } from './unauthenticated.ts';

/** How this port expects a buyer to be named: the scheme in the challenge of a `401`. */
type Scheme = 'Bearer' | 'X-Buyer-Id';

/** The buyer that a request comes from; or why there is none. */
export type Identity =
  | { readonly buyerId: string }
  /** Nothing names the buyer, or what names it is not valid. */
  | { readonly refused: Refused; readonly scheme: Scheme }
  /** A header that names the buyer came more than once, perhaps with different values. */
  | { readonly ambiguous: string }
  /** The token can't be checked now. */
  | { readonly unavailable: string }
  /** A web page of another site may have sent the request (local-site.ts). */
  | { readonly foreignSite: string }
  /** The buyer is known, and has sent too many requests. */
  | { readonly limited: CountedReply };

/** Reads the request at once; checking a token may take longer. Never rejects, because not every caller awaits it. */
export type Authenticate = (request: HttpRequest) => Identity | Promise<Identity>;

const NO_HEADER = refusedBy('X-Buyer-Id', 'missing', 'X-Buyer-Id is missing');
const ID_FORM = `must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces`;
const BAD_HEADER = refusedBy('X-Buyer-Id', 'invalid', `X-Buyer-Id ${ID_FORM}`);
const BAD_SUBJECT = refusedBy('Bearer', 'invalid', `the claim sub of the token ${ID_FORM}`);

function refusedBy(scheme: Scheme, reason: Refused['reason'], detail: string): Identity {
  return { refused: { reason, detail }, scheme };
}

/**
 * Reads `X-Buyer-Id`, which a trusted gateway sets. uWebSockets.js drops bytes beyond ASCII at the ends of a header, as if
 * they were white space, so `café` arrives as `caf`. A shop that needs to tell these two apart has its gateway encode ids, or
 * uses tokens.
 */
export function headerIdentity(): Authenticate {
  return (request) => {
    const buyerId = request.getHeader('x-buyer-id');
    return buyerId === '' ? NO_HEADER : checked(buyerId, BAD_HEADER);
  };
}

const IDENTITY_HEADERS = new Set(['x-buyer-id', 'authorization']);

/**
 * Refuses a request that names its buyer more than once. Otherwise the first header would count, and nothing tells which of
 * them a gateway has set. The check costs 75 ns for each header of the request, too much for a purchase.
 */
export function unambiguous(authenticate: Authenticate): Authenticate {
  return (request) => {
    const repeated = repeatedIdentityHeader(request);
    return repeated === undefined ? authenticate(request) : { ambiguous: `${repeated} came more than once` };
  };
}

function repeatedIdentityHeader(request: HttpRequest): string | undefined {
  const seen = new Set<string>();
  let repeated: string | undefined;
  request.forEach((name) => {
    if (!IDENTITY_HEADERS.has(name)) return;
    if (seen.has(name)) repeated = name;
    seen.add(name);
  });
  return repeated;
}

export interface JwtOptions {
  /** HS256 secret, or the URL of a key set for asymmetric algorithms: one of the two. */
  readonly secret: string | undefined;
  readonly jwksUrl: string | undefined;
  readonly audience: string | undefined;
  readonly issuer: string | undefined;
  /** How long one fetch of the key set may take. */
  readonly timeoutMs: number;
}

const ASYMMETRIC = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const MISSING = refusedBy('Bearer', 'missing', 'Authorization must be "Bearer <token>"');
const MALFORMED = refusedBy(
  'Bearer',
  'invalid',
  'the token is not valid: it must be a signed JWT, three parts in base64url without padding, and nothing after them',
);
/** The answer does not say which check failed: a forger would learn from it. */
const FORGED = refusedBy(
  'Bearer',
  'invalid',
  'the token is not valid: it is not signed with a key of this shop',
);
const EXPIRED = refusedBy('Bearer', 'expired', 'the token has expired: get a new one');
const CLOCK_TOLERANCE_S = 5;
const UNCHECKED: Identity = { unavailable: 'The token can’t be checked now. Nothing was taken.' };
/** There is no usable key set, so the token is neither valid nor invalid. */
const KEY_SET_FAULTS = ['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID'];

/**
 * Checks a bearer token whose claim `sub` names the buyer. The key decides the algorithm, never the token.
 * @param fault called with the reason why tokens can't be checked
 */
export function jwtIdentity(
  { secret, jwksUrl, audience, issuer, timeoutMs }: JwtOptions,
  fault: (error: unknown) => void,
): Authenticate {
  const options = {
    algorithms: secret !== undefined ? ['HS256'] : ASYMMETRIC,
    requiredClaims: ['sub', 'exp'],
    clockTolerance: CLOCK_TOLERANCE_S,
    ...(audience !== undefined && { audience }),
    ...(issuer !== undefined && { issuer }),
  };
  const payloadOf = secret !== undefined ? bySecret(secret, options) : byKeySet(jwksUrl!, timeoutMs, options);
  const good = new CheckedTokens<Identity>();
  const mayReport = seldom();

  async function verify(token: string, digest: string): Promise<Identity> {
    try {
      const payload = await payloadOf(token);
      const identity = checked(payload.sub, BAD_SUBJECT);
      good.set(digest, identity, (payload.exp! + CLOCK_TOLERANCE_S) * 1_000);
      return identity;
    } catch (error) {
      if (error instanceof errors.JOSEError && !KEY_SET_FAULTS.includes(error.code)) return refusedFor(error);
      if (mayReport()) fault(error);
      return UNCHECKED;
    }
  }

  return (request) => {
    const token = bearerToken(request.getHeader('authorization'));
    if (token === undefined) return MISSING;
    const digest = digestOf(token);
    // A cached token was well-formed.
    return good.get(digest) ?? (isCompact(token) ? verify(token, digest) : MALFORMED);
  };
}

/** The payload of a valid token. @throws JOSEError, and the error of a fetch */
type PayloadOf = (token: string) => Promise<JWTPayload>;

function bySecret(secret: string, options: JWTVerifyOptions): PayloadOf {
  const key = new TextEncoder().encode(secret);
  return async (token) => (await jwtVerify(token, key, options)).payload;
}

function byKeySet(url: string, timeoutMs: number, options: JWTVerifyOptions): PayloadOf {
  const keys = publishedKeys(new URL(url), timeoutMs);
  return (token) => verifyPublished(token, keys, options);
}

/** Claims are checked only after the signature, so naming the one that is wrong tells a forger nothing. */
function refusedFor(error: errors.JOSEError): Identity {
  if (error instanceof errors.JWTExpired && error.claim === 'exp') return EXPIRED;
  if (!(error instanceof errors.JWTClaimValidationFailed)) return FORGED;
  return refusedBy('Bearer', 'invalid', `the token is not valid: ${error.message}`);
}

/**
 * @param buyerId as it arrived: a claim may be any JSON value
 * @param otherwise the result if that is no valid buyer id
 */
function checked(buyerId: unknown, otherwise: Identity): Identity {
  return typeof buyerId === 'string' && ID_PATTERN.test(buyerId) ? { buyerId } : otherwise;
}

const FOREIGN_SITE = 'A web page of another site may have sent this request';

/** The answer to a request whose buyer is not known or not let in. */
export function refusal(identity: Exclude<Identity, { buyerId: string }>): {
  code: ProblemCode;
  reply: CountedReply;
} {
  if ('limited' in identity) return { code: 'rate_limited', reply: identity.limited };
  if ('foreignSite' in identity)
    return {
      code: 'forbidden',
      reply: problem('forbidden', { detail: `${FOREIGN_SITE}: ${identity.foreignSite}` }),
    };
  if ('ambiguous' in identity)
    return { code: 'invalid_request', reply: problem('invalid_request', { detail: identity.ambiguous }) };
  return 'refused' in identity
    ? { code: 'unauthenticated', reply: unauthenticated(identity.scheme, identity.refused) }
    : { code: 'unavailable', reply: problem('unavailable', { detail: identity.unavailable }) };
}
