/**
 * Writes under a lock (src/engine/lock/locks.ts): a holder may lose its lock without knowing it, because it was frozen
 * for longer than the ttl. So each write carries the holder's fencing token, and the script that writes compares it
 * with the newest one of the lock before it does anything.
 */
import { readFileSync } from 'node:fs';

const FENCED = readFileSync(new URL('./lua/fenced.lua', import.meta.url), 'utf8');

/** The script behind a check of the fencing token: one more key, `fenceKey`, and one more argument, the token, in front. */
export function fenced(lua: string): string {
  return FENCED.replace('--the script', () => lua);
}

/** Where the newest token of a lock is kept, beside the lock. */
export function fenceKey(lockKey: string): string {
  return `${lockKey}:fence`;
}
