/**
 * Writes under a lock (src/locks/locks.ts). A holder may lose its lock without noticing, because it was frozen for
 * longer than the ttl. So each write carries the holder's fencing token, and the script that writes first compares it
 * with the newest token of the lock.
 */
import { readFileSync } from 'node:fs';

const FENCED = readFileSync(new URL('./lua/fenced.lua', import.meta.url), 'utf8');

/**
 * Wraps a script in a check of the fencing token. The wrapped script takes one more key, `fenceKey`, and one more argument, the token,
 * both in front. If the token is not the newest, it does nothing and replies with an error that begins with `FENCED`.
 */
export function fenced(lua: string): string {
  return FENCED.replace('--the script', () => lua);
}

/**
 * The key of a lock. A name with a hash tag, such as `shop:{concert:3}:lock`, is its own key; any other name becomes
 * a hash tag.
 */
export function lockKey(name: string): string {
  return /\{[^}]+\}/.test(name) ? name : `{${name}}`;
}

/** What the key of a lock's newest token ends with. */
export const FENCE = ':fence';

/** The key of the lock's newest token, in the same slot as the lock. */
export function fenceKey(name: string): string {
  return `${lockKey(name)}${FENCE}`;
}
