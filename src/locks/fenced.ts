/**
 * Writes under a lock (src/locks/locks.ts): a holder may lose its lock without knowing it, because it was frozen
 * for longer than the ttl. So each write carries the holder's fencing token, and the script that writes compares it
 * with the newest one of the lock before it does anything.
 */
import { readFileSync } from 'node:fs';

const FENCED = readFileSync(new URL('./lua/fenced.lua', import.meta.url), 'utf8');

/** The script behind a check of the fencing token: one more key, `fenceKey`, and one more argument, the token, in front. */
export function fenced(lua: string): string {
  return FENCED.replace('--the script', () => lua);
}

/** Where a lock is kept: a name with a hash tag, as `shop:{concert:3}:lock`, is its key; any other becomes a hash tag. */
export function lockKey(name: string): string {
  return /\{[^}]+\}/.test(name) ? name : `{${name}}`;
}

/** Where the newest token of the lock of that name is kept, beside the lock. */
export function fenceKey(name: string): string {
  return `${lockKey(name)}:fence`;
}
