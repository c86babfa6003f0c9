/**
 * `401` at both ports: why the request is not let in, in the body and as a challenge (RFC 9110, 11.6.1; RFC 6750, 3).
 *
 *   missing  it says nothing of who sends it: the challenge names the scheme, and no error
 *   invalid  what it says is malformed, forged, or not for this shop
 *   expired  the token was genuine, and its time is over: a new one will do
 */
import { problem, type Reply } from '../server/problem.ts';

export interface Refused {
  readonly reason: 'missing' | 'invalid' | 'expired';
  /** For whoever reads the answer. */
  readonly detail: string;
}

const TITLES: Readonly<Record<Refused['reason'], string>> = {
  missing: 'The request does not say who it is from',
  invalid: 'The request does not prove who it is from',
  expired: 'The token has expired',
};

/** @param scheme how this port wants to be told; `X-Buyer-Id` is the header of a gateway, and no scheme of the register */
export function unauthenticated(scheme: string, { reason, detail }: Refused): Reply {
  const challenge = `${scheme} realm="stockade"${reason === 'missing' ? '' : errorOf(TITLES[reason])}`;
  return problem(
    'unauthenticated',
    { title: TITLES[reason], reason, detail },
    { 'www-authenticate': challenge },
  );
}

function errorOf(description: string): string {
  return `, error="invalid_token", error_description="${description}"`;
}
