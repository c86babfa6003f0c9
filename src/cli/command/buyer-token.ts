/** Tokens of buyers, as a shop's own program signs them (HS256). A node with BUYER_AUTH=jwt accepts them. */
import { createHmac } from 'node:crypto';

export interface BuyerTokens {
  readonly secret: string;
  readonly audience?: string;
  readonly issuer?: string;
}

/** @param seconds how long the token is valid */
export function signBuyerToken(
  { secret, audience, issuer }: BuyerTokens,
  buyerId: string,
  seconds: number,
): string {
  const exp = Math.floor(Date.now() / 1_000) + seconds;
  const claims = { sub: buyerId, exp, ...(audience && { aud: audience }), ...(issuer && { iss: issuer }) };
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
