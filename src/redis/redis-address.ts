/**
 * Reads the TLS settings of a Redis URL. `rediss://` asks for TLS; the server's certificate and host name are always
 * checked. As in a Postgres URL, `sslrootcert` names the file with the authorities to trust instead of the public
 * ones, and `sslcert` and `sslkey` name the files of this client's own certificate, where the server asks for one.
 */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';

export const TLS_FILES = ['sslrootcert', 'sslcert', 'sslkey'] as const;

const TLS_OPTIONS: Readonly<Record<(typeof TLS_FILES)[number], 'ca' | 'cert' | 'key'>> = {
  sslrootcert: 'ca',
  sslcert: 'cert',
  sslkey: 'key',
};

export interface RedisAddress {
  /** Without parameters, because the client would treat each as an option of its own. */
  readonly url: string;
  /** `undefined` without TLS. */
  readonly tls: ConnectionOptions | undefined;
}

/** A client would take any other path for the database 0. */
export const DATABASE = 'must have no path but the number of a database, such as /1';

export function hasDatabase(url: string): boolean {
  return /^\/?\d*$/.test(new URL(url).pathname);
}

/** @throws the file system's error if a file that the URL names can't be read */
export function redisAddress(text: string): RedisAddress {
  const url = new URL(text);
  const tls: ConnectionOptions = {};
  for (const name of TLS_FILES) {
    const file = url.searchParams.get(name);
    if (file !== null) tls[TLS_OPTIONS[name]] = readFileSync(file);
  }
  url.search = '';
  const isSecure = url.protocol === 'rediss:';
  // Several servers may share an address: the name tells which one is meant. TLS forbids an IP address as a server
  // name.
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0) tls.servername = url.hostname;
  return { url: url.href, tls: isSecure ? tls : undefined };
}
