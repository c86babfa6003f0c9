/** REDIS_URL: one server, or several of a cluster behind one protocol and one user: `redis://user:password@a:6379,b:6379`. */
import { z } from 'zod';
import { SecretUrl, withoutPassword } from './secret.ts';

const MUST_BE = 'must be a URL that begins with redis:// or rediss://';
const PROTOCOL = /^rediss?:\/\//;

/** @returns the URL of each server. A comma in a password is no separator: the servers come behind the last `@`. */
export function redisUrls(text: string): string[] {
  const protocol = PROTOCOL.exec(text)?.[0] ?? '';
  const serversAt = Math.max(text.lastIndexOf('@') + 1, protocol.length);
  const before = text.slice(0, serversAt);
  return text
    .slice(serversAt)
    .split(',')
    .map((server) => `${before}${server.trim()}`);
}

export const redisUrl = z
  .string({ error: MUST_BE })
  .refine((text) => redisUrls(text).every(isServer), { error: MUST_BE })
  .transform((text) => new SecretUrl(text, shown(text)));

function isServer(url: string): boolean {
  return PROTOCOL.test(url) && URL.canParse(url) && new URL(url).hostname !== '' && !isTwo(url);
}

/** A protocol before each server: the first of them would be taken for a password. */
function isTwo(url: string): boolean {
  return url.split('://').length > 2;
}

function shown(text: string): string {
  const [first = '', ...others] = redisUrls(text);
  return [withoutPassword(first), ...others.map((url) => new URL(url).host)].join(',');
}
