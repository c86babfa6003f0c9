/**
 * `401` at both ports. The body and the challenge (RFC 9110, 11.6.1; RFC 6750, 3) say why the request is refused.
 *
 *   missing  the request has no credentials: the challenge names the scheme, and no error
 *   invalid  the credentials are malformed, forged, or not for this shop
 *   expired  the token was valid, and its time is over: a new one will do
 */
import { problem } from '../server/replies/problem.ts';
import type { CountedReply } from '../server/replies/reply.ts';

export interface Refused {
  readonly reason: 'missing' | 'invalid' | 'expired';
  /** For people who read the answer. */
  readonly detail: string;
}

/** For the challenge. */
const DESCRIPTIONS: Readonly<Record<Refused['reason'], string>> = {
  missing: 'The credentials are missing',
  invalid: 'The credentials are not valid',
  expired: 'The token has expired',
};

/** @param scheme of the challenge. `X-Buyer-Id` is no registered scheme: it names the header that a gateway sets */
export function unauthenticated(scheme: string, { reason, detail }: Refused): CountedReply {
  const challenge = `${scheme} realm="stockade"${reason === 'missing' ? '' : errorOf(DESCRIPTIONS[reason])}`;
  return problem('unauthenticated', { reason, detail }, { 'www-authenticate': challenge });
}

function errorOf(description: string): string {
  return `, error="invalid_token", error_description="${description}"`;
}
