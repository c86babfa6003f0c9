/** IP addresses as bytes, and the keys under which a limit counts them. */
import { isIPv4, isIPv6 } from 'node:net';

const V4_BYTES = 4;
const V6_BYTES = 16;
/** The prefix of an IPv4 address written as an IPv6 one: `::ffff:192.0.2.1`. */
const V4_MAPPED = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);
/** A provider's customer gets a network of at least this size, which has 2^64 addresses. */
const V6_COUNTED_BYTES = 8;
/** Some providers give a customer a network of this size, which holds 65,536 networks of the size above. */
const V6_SITE_BYTES = 6;
const LOOPBACK_V4 = 127;

/** @returns 4 bytes for an IPv4 address, also if it is mapped to IPv6; else 16; `undefined` if the text is no address */
export function parseAddress(text: string): Uint8Array | undefined {
  if (isIPv4(text)) return Uint8Array.from(text.split('.'), Number);
  if (isIPv6(text) && !text.includes('%')) return normalised(v6Bytes(text));
  return undefined;
}

/** Turns a mapped IPv4 address, which sockets that listen on both families report, into the IPv4 address. */
export function normalised(bytes: Uint8Array): Uint8Array {
  return V4_MAPPED.every((byte, i) => bytes[i] === byte) ? bytes.slice(V4_MAPPED.length) : bytes;
}

/** IPv4 addresses, which are shorter, are counted one by one, IPv6 addresses by their network of 64 bits. */
export function addressKey(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, V6_COUNTED_BYTES));
}

/** An IPv6 address' network of 48 bits; `undefined` for an IPv4 address. */
export function siteKey(bytes: Uint8Array): string | undefined {
  return bytes.length === V6_BYTES ? String.fromCharCode(...bytes.subarray(0, V6_SITE_BYTES)) : undefined;
}

/** @param bytes normalised */
function isLoopback(bytes: Uint8Array): boolean {
  if (bytes.length === V4_BYTES) return bytes[0] === LOOPBACK_V4;
  return bytes.every((byte, i) => byte === (i === V6_BYTES - 1 ? 1 : 0));
}

function v6Bytes(text: string): Uint8Array {
  const [before, after] = text.split('::') as [string, string?];
  const head = groups(before);
  const tail = after === undefined ? [] : groups(after);
  const bytes = new Uint8Array(V6_BYTES);
  bytes.set(head);
  bytes.set(tail, V6_BYTES - tail.length);
  return bytes;
}

/** The last group may be an IPv4 address. A side of `::` without groups is a group of zeros. */
function groups(text: string): number[] {
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

/**
 * Everybody in a trusted network may name any address as its client's, so a network of the whole internet would end all limits. The
 * largest network that has a use is that of all local IPv6 addresses, `fc00::/7`.
 */
const LEAST_PREFIX_BITS = 7;

/** Addresses that begin with the same bits. */
interface Network {
  readonly bytes: Uint8Array;
  readonly bits: number;
}

/** @param text an address, or a network such as `10.0.0.0/8`; @returns `undefined` if it is neither, or too large */
function parseNetwork(text: string): Network | undefined {
  const [address, prefix] = text.split('/', 2) as [string, string?];
  const bytes = parseAddress(address);
  if (!bytes || text.split('/').length > 2) return undefined;
  const most = bytes.length * 8;
  if (prefix === undefined) return { bytes, bits: most };
  if (!/^\d{1,3}$/.test(prefix)) return undefined;
  // `::ffff:10.0.0.0/104` is 10.0.0.0/8.
  const bits = Number(prefix) - (bytes.length === V4_BYTES && address.includes(':') ? 96 : 0);
  return bits >= LEAST_PREFIX_BITS && bits <= most ? { bytes, bits } : undefined;
}

function contains({ bytes, bits }: Network, address: Uint8Array): boolean {
  if (address.length !== bytes.length) return false;
  return bytes.every((byte, i) => {
    // How many of the byte's bits, the last ones, do not belong to the network.
    const free = Math.min(8, Math.max(0, 8 * (i + 1) - bits));
    return (byte ^ address[i]!) >> free === 0;
  });
}

/**
 * The proxies in front of a node whose forwarded addresses are believed: how many there are, or their networks.
 */
export type TrustedProxies = number | readonly Network[];

export const MOST_PROXIES = 16;

export const TRUSTED_PROXIES_FORM = `must be a number of proxies from 1 to ${MOST_PROXIES}, or addresses and networks with commas between them, such as 10.0.0.0/8,2001:db8::/32; a network larger than /${LEAST_PREFIX_BITS} would let strangers name any address as theirs`;

/** @returns `undefined` if the text names no proxies */
export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  if (/^\d{1,2}$/.test(text)) {
    const count = Number(text);
    return count >= 1 && count <= MOST_PROXIES ? count : undefined;
  }
  const networks = text.split(',').map((part) => parseNetwork(part.trim()));
  return networks.every((network) => network !== undefined) ? networks : undefined;
}

/**
 * Whether a connection from this address may carry the requests of many clients: it comes from a trusted proxy, or from this
 * machine, where a proxy is likely. If proxies are given as a number, that is true of every connection.
 * @param address normalised
 */
export function mayBeProxy(address: Uint8Array, trusted: TrustedProxies | undefined): boolean {
  return isLoopback(address) || (trusted !== undefined && isTrusted(trusted, address, 0));
}

/** @param passed how many proxies are between this address and the node */
export function isTrusted(trusted: TrustedProxies, address: Uint8Array, passed: number): boolean {
  if (typeof trusted === 'number') return passed < trusted;
  return trusted.some((network) => contains(network, address));
}
