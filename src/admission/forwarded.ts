/**
 * Finds the address of the client in the header that proxies write.
 *
 * Each proxy appends its part to what was there, and what was there may come from the client. So the header is read from its end.
 * `Forwarded` (RFC 7239) also has text of the client in the part of a proxy: the host that the client has asked for, between
 * quotation marks. Separators in there separate nothing.
 */
import { isTrusted, MOST_PROXIES, normalised, parseAddress, type TrustedProxies } from './addresses.ts';

export type ForwardedHeader = 'x-forwarded-for' | 'forwarded';

/**
 * The address that a request is counted under: the nearest one that is not a trusted proxy's. Each proxy appends the address
 * of its client to the header. Earlier addresses in it are not trusted, because the client may have made them up.
 *
 * @param peer the address of the connection's other end
 * @param forwarded the values of the header, in their order, with commas between them
 */
export function clientAddress(
  peer: Uint8Array,
  forwarded: string,
  trusted: TrustedProxies,
  header: ForwardedHeader,
): Uint8Array {
  let nearest = normalised(peer);
  let passed = 0;
  for (const hop of lastFirst(forwarded, ',')) {
    if (passed === MOST_PROXIES || !isTrusted(trusted, nearest, passed++)) break;
    const next = parseNode(header === 'forwarded' ? forIn(hop) : hop);
    // A proxy that names no client counts as the client itself.
    if (!next) break;
    nearest = next;
  }
  return nearest;
}

/** The parts of the text, from the last one on. A separator between quotation marks separates nothing. */
function* lastFirst(text: string, separator: ',' | ';'): Generator<string> {
  let end = text.length;
  let isQuoted = false;
  for (let at = text.length - 1; at >= 0; at--) {
    if (text[at] === '"' && !isEscaped(text, at)) isQuoted = !isQuoted;
    if (isQuoted || text[at] !== separator) continue;
    yield text.slice(at + 1, end);
    end = at;
  }
  yield text.slice(0, end);
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - backslashes - 1] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

const FOR = /^\s*for=(?:"([^"]*)"|([^"]*))\s*$/i;

/** The value of `for` in the part of one proxy; `''` if there is none. If there are two, nothing tells which of them it has written. */
function forIn(part: string): string {
  const [found, ...others] = [...lastFirst(part, ';')]
    .map((pair) => FOR.exec(pair))
    .filter((pair) => pair !== null);
  return found && others.length === 0 ? (found[1] ?? found[2] ?? '') : '';
}

/** `192.0.2.1`, `192.0.2.1:4711`, `[2001:db8::1]:4711`, `2001:db8::1` */
function parseNode(text: string): Uint8Array | undefined {
  const node = text.trim();
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(node)?.[1] ?? /^([\d.]+):\d+$/.exec(node)?.[1] ?? node;
  return parseAddress(bare);
}
