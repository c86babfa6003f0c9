/** One typed function per lock script. No other code calls a script, and callers never build argument arrays. */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { LockKeys } from './lock-keys.ts';
import { FENCE_KEPT_MS } from './lock-limits.ts';

const source = (name: string) => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');

const SCRIPTS = {
  acquire: { lua: source('acquire'), numberOfKeys: 2 },
  renew: { lua: source('renew'), numberOfKeys: 2 },
  release: { lua: source('release'), numberOfKeys: 1 },
} as const;

export type AcquireReply =
  | {
      readonly held: true;
      readonly token: number;
      /** The owner that held it before, `''` for none. */
      readonly previous: string;
    }
  /** `expiresInMs` is negative if the key has no expiry: then this module did not write it. */
  | { readonly held: false; readonly expiresInMs: number };

type RawAcquireReply = ['held', token: string, previous: string] | ['refused', expiresInMs: number];
type Commands = Record<keyof typeof SCRIPTS, (...args: (string | number)[]) => Promise<unknown>>;

export class LockScripts {
  readonly #commands: Commands;

  constructor(redis: Redis) {
    for (const [name, script] of Object.entries(SCRIPTS)) redis.defineCommand(`lock:${name}`, script);
    const defined = redis as unknown as Record<string, Commands[keyof Commands]>;
    this.#commands = Object.fromEntries(
      Object.keys(SCRIPTS).map((name) => [name, defined[`lock:${name}`]!.bind(redis)]),
    ) as Commands;
  }

  /** @param from the owner that passes the lock on, `''` for none */
  async acquire(
    { lock, fence }: LockKeys,
    owner: string,
    ttlMs: number,
    from: string,
  ): Promise<AcquireReply> {
    const raw = await this.#commands.acquire(lock, fence, owner, ttlMs, FENCE_KEPT_MS, from);
    const reply = raw as RawAcquireReply;
    if (reply[0] === 'refused') return { held: false, expiresInMs: reply[1] };
    return { held: true, token: Number(reply[1]), previous: reply[2] };
  }

  async renew({ lock, fence }: LockKeys, owner: string, ttlMs: number): Promise<boolean> {
    return (await this.#commands.renew(lock, fence, owner, ttlMs, FENCE_KEPT_MS)) === 1;
  }

  /** @returns how many processes listen on the lock's channel; -1 if this owner no longer held the lock */
  release({ lock, channel }: LockKeys, owner: string): Promise<number> {
    return this.#commands.release(lock, owner, channel) as Promise<number>;
  }
}
