/**
 * Locks in Redis, for work that has to be alone on something: on a segment, mostly.
 *
 * Goals: one holder at a time, as long as Redis keeps its data and every holder's clock runs at a sane rate. A holder
 * that dies frees its lock within the ttl. A holder that loses its lock is told at once, and what it writes nevertheless
 * is refused. Waiting costs Redis next to nothing.
 * Non-goals: fairness between processes (within one, first come first served); locks that survive a failover of Redis.
 * Against both a second holder after a failover and a holder that was frozen the fencing token helps, and nothing else:
 * each write under the lock carries it, and who executes the write compares (src/locks/fenced.ts).
 *
 * In Redis a lock is a key with its owner and a ttl, and a fence with the newest token. A lock is
 *
 *   free ──acquire (owner, ttl, token)──> held ──renew (every third of the ttl)──> held
 *                                          │ ──release──> free, and a message
 *                                          │ ──hand over, in one process──> held by the next owner, with the next token
 *                                          │ ──the ttl is over──> free, without a message
 *
 * | it happens | what is left | who mends it |
 * |---|---|---|
 * | the holder dies | the lock, until its ttl is over | waiters ask again when it is |
 * | the holder is frozen beyond the ttl | another holder, with a greater token | its writes are refused; it learns of it as soon as it runs: `held` at once, `signal` with the next timer |
 * | the reply to an acquisition is lost | a lock that no handle has | asked again with the same owner it is adopted, or given back if nobody waits any more; else its ttl ends |
 * | the reply to a renewal is lost | a prolonged lock | another renewal is sent; the holder counts from the last one that was confirmed |
 * | the reply to a release is lost | a free lock, and the message was sent | released again, which changes nothing |
 * | the reply to a hand-over is lost | the next owner's lock | handed over again, which tells the token |
 * | a message is lost | a free lock and waiters asleep | they ask again within `FALLBACK_POLL_MS` |
 * | Redis can't be reached | the lock, until its ttl is over | the holder is told before that, by its own clock |
 * | Redis restarts without its data, or a replica takes over that lacks the lock | a free lock, and a holder | the next renewal is refused; tokens follow the clock and go on rising; writes with the old token are refused |
 */
import { randomBytes } from 'node:crypto';
import { connect, subscriberClient, takeClient } from '../redis/clients.ts';
import { LockConnection } from './lock-connection.ts';
import { LockNotAcquired } from './lock-errors.ts';
import type { LockHandle } from './lock-handle.ts';
import { lockKeys } from './lock-keys.ts';
import { DEFAULT_TTL_MS, DEFAULT_WAIT_MS, type LockTimes, lockTimes, MAX_WAIT_MS } from './lock-limits.ts';
import { LockQueue } from './lock-queue.ts';
import type { WaitOptions } from './waiter.ts';
import { Wakeups } from './wakeups.ts';

export interface LocksOptions {
  /** The Redis that the locks are kept in: the one that holds what they protect. */
  readonly url: string;
  /** After so many milliseconds the lock of a holder that has died is free: 100 to 600,000, default 10,000. */
  readonly ttlMs?: number | undefined;
}

export interface TryLockOptions {
  /** A handle of the caller's. If it holds this very lock it is entered once more, and Redis is not asked. */
  readonly holder?: LockHandle | undefined;
}

export interface LockOptions extends TryLockOptions {
  /** How long to wait for the lock, in milliseconds: 1 to 600,000, default 10,000. */
  readonly waitMs?: number | undefined;
  /** Ends the waiting; `lock` then throws its reason. What is held already stays so. */
  readonly signal?: AbortSignal | undefined;
}

export class Locks {
  readonly #connection: LockConnection;
  readonly #wakeups: Wakeups;
  readonly #times: LockTimes;
  readonly #queues = new Map<string, LockQueue>();
  readonly #process = randomBytes(12).toString('base64url');
  #owners = 0;
  #closed = false;

  private constructor(connection: LockConnection, wakeups: Wakeups, times: LockTimes) {
    this.#connection = connection;
    this.#wakeups = wakeups;
    this.#times = times;
  }

  /** @throws RangeError for a ttl out of range, NotExecuted if Redis can't be reached now */
  static async open({ url, ttlMs = DEFAULT_TTL_MS }: LocksOptions): Promise<Locks> {
    const times = lockTimes(ttlMs);
    const clients = [takeClient(url), subscriberClient(url)] as const;
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
   * The lock, or `undefined` if somebody holds it or waits for it.
   * @throws NotExecuted if Redis can't be reached, LockNotAcquired if it does not answer
   */
  async tryLock(name: string, { holder }: TryLockOptions = {}): Promise<LockHandle | undefined> {
    if (holder?.held && holder.name === name) return holder.enter();
    return this.#wait(name, { waitMs: 2 * this.#times.answerWithinMs, tryOnce: true });
  }

  /** The lock, as soon as it is free. @throws LockNotAcquired when the wait limit has passed; the signal's reason */
  async lock(name: string, options: LockOptions = {}): Promise<LockHandle> {
    const { waitMs = DEFAULT_WAIT_MS, signal, holder } = options;
    if (!(waitMs >= 1 && waitMs <= MAX_WAIT_MS)) {
      throw new RangeError(`waitMs is ${waitMs}: must be from 1 to ${MAX_WAIT_MS}`);
    }
    if (holder?.held && holder.name === name) return holder.enter();
    signal?.throwIfAborted();
    // Who waits is never given `undefined`.
    return (await this.#wait(name, { waitMs, signal, tryOnce: false }))!;
  }

  /**
   * Does the work under the lock, and gives the lock back however the work ends.
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
      // The work's own error says more than what may have become of the lock.
      await handle.release().catch(() => {});
      throw error;
    }
    await handle.release();
    return result;
  }

  /** Refuses those who wait, gives back what is held (its holders are told that it is lost), and disconnects. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#wakeups.close();
    this.#connection.disconnect();
  }

  async #wait(name: string, options: WaitOptions): Promise<LockHandle | undefined> {
    if (this.#closed) throw new LockNotAcquired(name, 'the locks of this process were closed');
    let queue = this.#queues.get(name);
    if (!queue) {
      queue = new LockQueue(name, lockKeys(name), {
        connection: this.#connection,
        wakeups: this.#wakeups,
        times: this.#times,
        nextOwner: () => `${this.#process}:${++this.#owners}`,
        idle: () => {
          if (this.#queues.get(name) === own) this.#queues.delete(name);
        },
      });
      const own = queue;
      this.#queues.set(name, queue);
    }
    return queue.wait(options);
  }
}
