/**
 * Where buyers are named by a header, whoever reaches the port names itself; on the loopback that is this machine. Its
 * browsers reach the port too, for web pages of anybody:
 *
 *   DNS rebinding        the page's own name points to 127.0.0.1, and its requests are same-origin: its name is the `Host`
 *   a cross-site request `X-Buyer-Id` needs a preflight, which is refused; a page that gets by without has its `Origin`
 *
 * So both must be names of this machine. A gateway passes on the shop's name: with it (TRUST_BUYER_HEADER=1) none of this is
 * looked at.
 */
import type { HttpRequest } from '../server/http-request.ts';
import type { Authenticate, Identity } from './identity.ts';

/** With any port; uWS gives names of headers in lower case, and values as they came. */
const LOCAL_HOST = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d{1,5})?$/i;
const LOCAL_ORIGIN = /^https?:\/\/(.*)$/i;

export function onlyFromThisMachine(authenticate: Authenticate): Authenticate {
  /** Most requests have the same: then a comparison is all. */
  let lastLocal = '';
  return (request) => {
    const host = request.getHeader('host');
    if (host !== lastLocal) {
      if (!LOCAL_HOST.test(host)) return elsewhere('Host', host);
      lastLocal = host;
    }
    return foreignOrigin(request) ?? authenticate(request);
  };
}

function foreignOrigin(request: HttpRequest): Identity | undefined {
  const origin = request.getHeader('origin');
  if (origin === '') return undefined;
  const place = LOCAL_ORIGIN.exec(origin)?.[1];
  return place !== undefined && LOCAL_HOST.test(place) ? undefined : elsewhere('Origin', origin);
}

const MOST_SHOWN_CHARACTERS = 100;

function elsewhere(header: string, value: string): Identity {
  const shown = JSON.stringify(value.slice(0, MOST_SHOWN_CHARACTERS));
  return {
    elsewhere:
      `${header} is ${shown}, which is no name of this machine: with BUYER_AUTH=header on the loopback web pages of others must ` +
      'not buy. Ask for localhost or 127.0.0.1; a node behind a gateway needs TRUST_BUYER_HEADER=1.',
  };
}
