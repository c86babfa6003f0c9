import type { HttpRequest } from 'uWebSockets.js';
import { createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../engine/limits.ts';

/** Who a request is from, or what is wrong with what it says of that. */
export type Identity = { readonly buyerId: string } | { readonly refused: string };

/** Reads the request at once; what it says may take time to check. */
export type Authenticate = (request: HttpRequest) => Identity | Promise<Identity>;

const NO_HEADER: Identity = { refused: 'X-Buyer-Id is missing' };
const BAD_ID: Identity = {
  refused: `a buyer's id must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces`,
};

/** `X-Buyer-Id`, as a trusted gateway sets it. */
export function headerIdentity(): Authenticate {
  return (request) => {
    const buyerId = request.getHeader('x-buyer-id');
    return buyerId === '' ? NO_HEADER : checked(buyerId);
  };
}

export interface JwtOptions {
  /** HS256 secret, or the URL of a key set for asymmetric algorithms: one of the two. */
  readonly secret: string | undefined;
  readonly jwksUrl: string | undefined;
  readonly audience: string | undefined;
  readonly issuer: string | undefined;
}

/** Checking a signature costs more than selling a unit; buyers send the same token again and again. */
const CACHED_TOKENS = 50_000;
const ASYMMETRIC = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const MISSING: Identity = { refused: 'Authorization must be "Bearer <token>"' };
const CLOCK_TOLERANCE_S = 5;

/** A bearer token whose claim `sub` names the buyer. The algorithm follows from the key, never from the token. */
export function jwtIdentity({ secret, jwksUrl, audience, issuer }: JwtOptions): Authenticate {
  const key: Uint8Array | JWTVerifyGetKey =
    secret !== undefined ? new TextEncoder().encode(secret) : createRemoteJWKSet(new URL(jwksUrl!));
  const options = {
    algorithms: secret !== undefined ? ['HS256'] : ASYMMETRIC,
    requiredClaims: ['sub', 'exp'],
    clockTolerance: CLOCK_TOLERANCE_S,
    ...(audience !== undefined && { audience }),
    ...(issuer !== undefined && { issuer }),
  };
  const verified = new LRUCache<string, { identity: Identity; untilMs: number }>({ max: CACHED_TOKENS });

  async function verify(token: string): Promise<Identity> {
    try {
      const { payload } = await jwtVerify(token, key as JWTVerifyGetKey, options);
      const identity = checked(payload.sub ?? '');
      verified.set(token, { identity, untilMs: (payload.exp! + CLOCK_TOLERANCE_S) * 1_000 });
      return identity;
    } catch (error) {
      if (error instanceof errors.JOSEError) return { refused: `the token is not valid: ${error.message}` };
      throw error;
    }
  }

  return (request) => {
    const [scheme, token] = request.getHeader('authorization').split(' ', 2);
    if (scheme?.toLowerCase() !== 'bearer' || !token) return MISSING;
    const known = verified.get(token);
    return known && Date.now() < known.untilMs ? known.identity : verify(token);
  };
}

function checked(buyerId: string): Identity {
  return ID_PATTERN.test(buyerId) ? { buyerId } : BAD_ID;
}
