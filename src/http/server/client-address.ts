/** The address that a request comes from: that of its client, also behind proxies. */
import { normalised, type TrustedProxies } from '../../admission/addresses.ts';
import { clientAddress, type ForwardedHeader } from '../../admission/forwarded.ts';
import type { Exchange } from './exchange.ts';
import type { HttpRequest } from './http-request.ts';

/** The client's address, normalised. A handler must ask for it before it awaits: afterwards neither argument has it. */
export type AddressOf = (exchange: Pick<Exchange, 'peer'>, request: HttpRequest) => Uint8Array;

/** @param trustedProxies whose `header` is believed; `undefined`: the client is the other end of the connection */
export function addressOf(trustedProxies: TrustedProxies | undefined, header: ForwardedHeader): AddressOf {
  if (trustedProxies === undefined) return ({ peer }) => normalised(peer);
  return ({ peer }, request) => clientAddress(peer, everyValue(request, header), trustedProxies, header);
}

/** A header may come several times. `getHeader` returns the first: the client's own, if a proxy has added another. */
function everyValue(request: HttpRequest, header: string): string {
  const values: string[] = [];
  request.forEach((name, value) => {
    if (name === header) values.push(value);
  });
  return values.join(',');
}
