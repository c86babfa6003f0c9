import { BlockList, isIP } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/**
 * Whether only this machine can reach what listens on `host`. False for names other than `localhost`: they may mean any host.
 * @param host an address or a name; an IPv6 address may have the brackets that it has in a URL
 */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  const family = isIP(address);
  if (family === 0) return address.toLowerCase() === 'localhost';
  return loopback.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/** Whether buyers on other machines can mark their orders paid. */
export function paysInPublic({ publicPayment, host }: { publicPayment: boolean; host: string }): boolean {
  return publicPayment && !isLoopback(host);
}

/** Whether buyers on other machines can store a reference and metadata with their orders. */
export function notesInPublic(config: { publicOrderNotes: boolean; host: string }): boolean {
  return config.publicOrderNotes && !isLoopback(config.host);
}

/** The host that a connection to this URL of Postgres leads to, by the rules of its driver; `localhost` stands for a socket too. */
export function postgresHost(url: string): string {
  const { hostname, searchParams } = new URL(url);
  const host = searchParams.get('host') || hostname || process.env.PGHOST || '';
  return host === '' || host.startsWith('/') ? 'localhost' : host;
}

/** The host by which a client on this machine reaches what listens on `host`: for a wildcard, the loopback. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '::1';
  return host;
}

export function httpUrl(host: string, port: number): string {
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** Whether an attacker on the network could change what is fetched from this URL. */
export function isUnprotected(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname);
}
