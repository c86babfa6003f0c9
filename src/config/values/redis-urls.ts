/**
 * REDIS_URL: one server, or several of a cluster behind one protocol and one user, with parameters that hold for all:
 * `rediss://user:password@a:6379,b:6379?sslrootcert=ca.pem`.
 */
import { z } from 'zod';
import { DATABASE, hasDatabase, TLS_FILES } from '../../redis/redis-address.ts';
import { SecretUrl, withoutSecrets } from './secret.ts';
import { faultOfFiles } from './url-files.ts';

const MUST_BE = 'must be a URL that begins with redis:// or rediss://';
const PARAMETERS = `may have the parameters ${TLS_FILES.join(', ')}, with rediss://, and no others`;
const NO_FRAGMENT = 'must not hold a #; in a password it is written %23';
const ONLY_ESCAPES = 'must hold % in a user or password only as part of an escape: a % itself is written %25';
const PROTOCOL = /^rediss?:\/\//;

/** @returns the URL of each server. The servers begin after the last `@`, so a comma in a password does not separate them. */
export function redisUrls(text: string): string[] {
  const protocol = PROTOCOL.exec(text)?.[0] ?? '';
  const serversAt = Math.max(text.split('?')[0]!.lastIndexOf('@') + 1, protocol.length);
  const queryAt = text.indexOf('?', serversAt);
  const [before, query] = [text.slice(0, serversAt), queryAt < 0 ? '' : text.slice(queryAt)];
  return text
    .slice(serversAt, queryAt < 0 ? undefined : queryAt)
    .split(',')
    .map((server) => `${before}${server.trim()}${query}`);
}

export const redisUrl = z
  .string({ error: MUST_BE })
  // The text after a # would become part of one server's URL and not of the others.
  .refine((text) => !text.includes('#'), { error: NO_FRAGMENT, abort: true })
  .refine((text) => redisUrls(text).every(isServer), { error: MUST_BE, abort: true })
  .refine((text) => redisUrls(text).every(hasDatabase), { error: DATABASE, abort: true })
  .refine((text) => isDecodable(redisUrls(text)[0]!), { error: ONLY_ESCAPES, abort: true })
  .refine(hasKnownParameters, { error: PARAMETERS, abort: true })
  .refine((text) => faultOfFiles(redisUrls(text)[0]!) === undefined, {
    error: ({ input }) => faultOfFiles(redisUrls(String(input))[0]!) ?? '',
    abort: true,
  })
  .transform((text) => new SecretUrl(text, shown(text)));

function isServer(url: string): boolean {
  return PROTOCOL.test(url) && URL.canParse(url) && new URL(url).hostname !== '' && !isTwo(url);
}

function isDecodable(url: string): boolean {
  const { username, password } = new URL(url);
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/** There is a protocol before each server. Then the first server would be parsed as user and password. */
function isTwo(url: string): boolean {
  return url.split('://').length > 2;
}

/** The client treats unknown parameters as its own options. One of these would make it send a take twice. */
function hasKnownParameters(text: string): boolean {
  const { protocol, searchParams } = new URL(redisUrls(text)[0]!);
  const names = [...searchParams.keys()];
  return names.length === 0 || (protocol === 'rediss:' && names.every((name) => isTlsFile(name)));
}

function isTlsFile(name: string): boolean {
  return (TLS_FILES as readonly string[]).includes(name);
}

function shown(text: string): string {
  const [first = '', ...others] = redisUrls(text);
  return [withoutSecrets(first), ...others.map((url) => new URL(url).host)].join(',');
}
