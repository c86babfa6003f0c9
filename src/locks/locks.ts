/**
 * Locks in Redis, for work that must run alone, mostly on one segment.
 *
 * Goals: one holder at a time, as long as Redis keeps its data and every clock runs at a normal rate. The lock of a
 * dead holder is free within the ttl. A holder that loses its lock learns of it at once, and its later writes are
 * refused. Waiting costs Redis next to nothing.
 * Non-goals: fairness between processes (within one, first come first served); locks that survive a failover of
 * Redis. After a failover there may be a second holder, and a frozen holder may resume late. Only the fencing token
 * protects against these: each write under the lock carries it, and the script that writes compares it
 * (src/locks/fenced.ts).
 *
 * In Redis a lock is a key with its owner and a ttl, and a fence with the newest token. Its states:
 *
 *   free ──acquire (owner, ttl, token)──> held ──renew (every third of the ttl)──> held
 *                                          │ ──release──> free, and a message is published
 *                                          │ ──pass on, within one process──> held by the next owner, with the next token
 *                                          │ ──the ttl is over──> free, without a message
 *
 * | event | what remains | how it is resolved |
 * |---|---|---|
 * | the holder dies | the lock, until its ttl is over | waiters try again when it is over |
 * | the holder is frozen for longer than the ttl | another holder, with a greater token | its writes are refused; when it runs again, `held` is false at once and `signal` aborts with the next timer |
 * | the reply to an acquisition is lost | a lock without a handle | a repeat with the same owner adopts it; if no caller waits any more it is released, or its ttl ends |
 * | the reply to a renewal is lost | a prolonged lock | another renewal is sent; the holder counts from the last confirmed one |
 * | the reply to a release is lost | a free lock; the message was sent | the release is repeated, which changes nothing |
 * | the reply to a pass within the process is lost | the next owner's lock | the command is repeated and returns the token |
 * | a message is lost | a free lock and sleeping waiters | they try again within `FALLBACK_POLL_MS` |
 * | Redis can't be reached | the lock, until its ttl is over | the holder's own clock ends its trust before that |
 * | Redis restarts without its data, or a replica without the lock takes over | a free lock, and a holder | the next renewal is refused; tokens follow the clock and keep rising; writes with the old token are refused |
 */
import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { clientsLike, connect, subscriberClient, takeClient } from '../redis/clients.ts';
import { DATABASE, hasDatabase } from '../redis/redis-address.ts';
import { LockConnection } from './lock-connection.ts';
import { LOCKS_CLOSED, LockNotAcquired } from './lock-errors.ts';
import type { LockHandle } from './lock-handle.ts';
import { lockKeys } from './lock-keys.ts';
import { DEFAULT_TTL_MS, type LockTimes, lockTimes } from './lock-limits.ts';
import {
  invalidOption,
  type LockOptions,
  type LocksOptions,
  openOptions,
  type TryLockOptions,
  tryOptions,
  waitOptions,
} from './lock-options.ts';
import { LockQueue } from './lock-queue.ts';
import type { WaitOptions } from './waiters.ts';
import { Wakeups } from './wakeups.ts';

export class Locks {
  readonly #connection: LockConnection;
  readonly #wakeups: Wakeups;
  readonly #times: LockTimes;
  /** By the key of the lock: several names may have the same. */
  readonly #queues = new Map<string, LockQueue>();
  readonly #process = randomBytes(12).toString('base64url');
  #owners = 0;
  #closed = false;

  private constructor(connection: LockConnection, wakeups: Wakeups, times: LockTimes) {
    this.#connection = connection;
    this.#wakeups = wakeups;
    this.#times = times;
  }

  /** @throws InvalidInput, RangeError for a ttl out of range, NotExecuted if Redis can't be reached now */
  static async open(options: LocksOptions): Promise<Locks> {
    const { ttlMs = DEFAULT_TTL_MS, ...place } = openOptions(options ?? {});
    const times = lockTimes(ttlMs);
    const clients = clientsOf(place);
    try {
      await Promise.all(clients.map(connect));
    } catch (error) {
      for (const client of clients) client.disconnect();
      throw error;
    }
    const [forCommands, forMessages] = clients;
    return new Locks(new LockConnection(forCommands, times), new Wakeups(forMessages), times);
  }

  /**
   * The lock, or `undefined` if it is held or others wait for it.
   * @throws NotExecuted if Redis can't be reached, LockNotAcquired if it does not answer
   */
  async tryLock(name: string, options: TryLockOptions = {}): Promise<LockHandle | undefined> {
    const { holder } = tryOptions(options);
    if (holder && this.#isHeldBy(holder, name)) return holder.enter();
    return this.#wait(name, { waitMs: 2 * this.#times.answerWithinMs, tryOnce: true });
  }

  /**
   * The lock, as soon as it is free.
   * @throws LockNotAcquired when the wait limit has passed; the signal's reason; InvalidInput, RangeError for wrong options
   */
  async lock(name: string, options: LockOptions = {}): Promise<LockHandle> {
    const { waitMs, signal, holder } = waitOptions(options);
    if (holder && this.#isHeldBy(holder, name)) return holder.enter();
    signal?.throwIfAborted();
    // Only `tryLock` resolves with `undefined`.
    return (await this.#wait(name, { waitMs, signal, tryOnce: false }))!;
  }

  /**
   * Runs the work under the lock, and releases the lock however the work ends.
   * @returns the work's result
   * @throws as `lock`; the work's error; LockLost if the lock was lost before the work had ended
   */
  async withLock<T>(
    name: string,
    work: (handle: LockHandle) => Promise<T>,
    options?: LockOptions,
  ): Promise<T> {
    const handle = await this.lock(name, options);
    let result: T;
    try {
      result = await work(handle);
    } catch (error) {
      // The work's own error matters more than an error of the release.
      await handle.release().catch(() => {});
      throw error;
    }
    await handle.release();
    return result;
  }

  /**
   * For locks on a cluster: releases a lock whose key has moved to this server. Its holder could not, because it asked the server
   * that had the key before (`LockMoved`).
   */
  async releaseMoved(name: string, owner: string): Promise<void> {
    await this.#connection.release(lockKeys(name), owner);
  }

  /** Rejects all waiters, releases all held locks (their handles report them as lost), and disconnects. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#wakeups.close();
    this.#connection.disconnect();
  }

  async #wait(name: string, options: WaitOptions): Promise<LockHandle | undefined> {
    if (this.#closed) throw new LockNotAcquired(name, LOCKS_CLOSED);
    const keys = lockKeys(name);
    let queue = this.#queues.get(keys.lock);
    if (!queue) {
      queue = new LockQueue(name, keys, {
        connection: this.#connection,
        wakeups: this.#wakeups,
        times: this.#times,
        nextOwner: () => `${this.#process}:${++this.#owners}`,
        idle: () => {
          if (this.#queues.get(keys.lock) === own) this.#queues.delete(keys.lock);
        },
      });
      const own = queue;
      this.#queues.set(keys.lock, queue);
    }
    return queue.wait(options);
  }

  #isHeldBy(holder: LockHandle, name: string): boolean {
    return this.#queues.get(lockKeys(name).lock)?.isHeldBy(holder) ?? false;
  }
}

/** @throws InvalidInput */
function clientsOf({ url, redis }: LocksOptions): readonly [forCommands: Redis, forMessages: Redis] {
  if ((url === undefined) === (redis === undefined))
    throw invalidOption('url', 'or redis must be given, and not both');
  if (redis !== undefined) {
    // Clients of the package `redis` have a `duplicate` too.
    if (typeof redis?.duplicate !== 'function' || typeof redis.isCluster !== 'boolean')
      throw invalidOption('redis', 'must be a client of ioredis');
    if (redis.isCluster) throw invalidOption('redis', 'is a client of a cluster: locks need a single Redis');
    return clientsLike(redis);
  }
  // The message does not show the text, because it may hold a password.
  if (!/^rediss?:\/\//.test(String(url)) || !URL.canParse(url!))
    throw invalidOption('url', 'must be a URL that begins with redis:// or rediss://');
  if (!hasDatabase(url!)) throw invalidOption('url', DATABASE);
  return [takeClient(url!), subscriberClient(url!)];
}
