/**
 * Keeps web pages of other sites from buying, where a header names the buyer and no gateway sets that header. Such a node
 * listens on the loopback, so only this machine reaches it. But a browser on this machine sends requests for any web page:
 *
 *   DNS rebinding        the page's host name resolves to 127.0.0.1, so its requests are same-origin. Their `Host` is that name
 *   cross-site request   `X-Buyer-Id` needs a preflight, which is refused. A request without preflight has the page's `Origin`
 *
 * So `Host` and `Origin` must name this machine. A gateway passes on the shop's host name, so behind a gateway
 * (TRUST_BUYER_HEADER=1) neither is checked.
 */
import type { HttpRequest } from '../server/http-request.ts';
import type { Authenticate, Identity } from './identity.ts';

/** With or without a port. */
const LOCAL_HOST = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d{1,5})?$/i;
const LOCAL_ORIGIN = /^https?:\/\/(.*)$/i;

export function onlyFromThisMachine(authenticate: Authenticate): Authenticate {
  /** Most requests have the same `Host`, so comparing it with the last good one saves the match. */
  let lastLocal = '';
  return (request) => {
    const host = request.getHeader('host');
    if (host !== lastLocal) {
      if (!LOCAL_HOST.test(host)) return foreignSite('Host', host);
      lastLocal = host;
    }
    return foreignOrigin(request) ?? authenticate(request);
  };
}

function foreignOrigin(request: HttpRequest): Identity | undefined {
  const origin = request.getHeader('origin');
  if (origin === '') return undefined;
  const place = LOCAL_ORIGIN.exec(origin)?.[1];
  return place !== undefined && LOCAL_HOST.test(place) ? undefined : foreignSite('Origin', origin);
}

const MAX_SHOWN_CHARACTERS = 100;

function foreignSite(header: string, value: string): Identity {
  const shown = JSON.stringify(value.slice(0, MAX_SHOWN_CHARACTERS));
  return {
    foreignSite:
      `${header} is ${shown}, which does not name this machine. With BUYER_AUTH=header on the loopback, a node refuses requests ` +
      'that a web page of another site may have sent. Use localhost or 127.0.0.1; a node behind a gateway needs TRUST_BUYER_HEADER=1.',
  };
}
