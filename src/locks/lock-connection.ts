/**
 * The connection for lock commands. A command is sent at most once, and fails if the answer is late. The caller
 * decides whether to send it again; all lock commands may be repeated, because they name the owner.
 */
import type { Redis } from 'ioredis';
import { BackendCorrupt, NotExecuted, OutcomeUnknown } from '../engine/errors.ts';
import { corking, DEMOTED } from '../redis/clients.ts';
import { isRedirect, isRefusal } from '../redis/refusals.ts';
import { replyReason } from '../redis/reply-reason.ts';
import { LockMoved } from './lock-errors.ts';
import type { LockKeys } from './lock-keys.ts';
import type { LockTimes } from './lock-limits.ts';
import { type AcquireReply, LockScripts } from './lock-scripts.ts';

export class LockConnection {
  readonly #redis: Redis;
  readonly #cork: () => void;
  readonly #scripts: LockScripts;
  readonly #times: LockTimes;

  constructor(redis: Redis, times: LockTimes) {
    this.#redis = redis;
    // Many critical sections end in one turn of the event loop: their commands leave in one write.
    this.#cork = corking(redis, setImmediate);
    this.#scripts = new LockScripts(redis);
    this.#times = times;
  }

  /** @throws as `renew` */
  acquire(keys: LockKeys, owner: string, from = ''): Promise<AcquireReply> {
    return this.#guarded(() => this.#scripts.acquire(keys, owner, this.#times.ttlMs, from), from);
  }

  /**
   * @throws NotExecuted, OutcomeUnknown: may be repeated. LockMoved. BackendCorrupt: the key holds something else than a lock
   */
  renew(keys: LockKeys, owner: string): Promise<boolean> {
    return this.#guarded(() => this.#scripts.renew(keys, owner, this.#times.ttlMs));
  }

  /**
   * @returns how many processes listen on the lock's channel; -1 if this owner no longer held the lock. @throws as
   * `renew`
   */
  release(keys: LockKeys, owner: string): Promise<number> {
    return this.#guarded(() => this.#scripts.release(keys, owner), owner);
  }

  disconnect(): void {
    this.#redis.disconnect();
  }

  /** @param owner the owner whose hold the command ends */
  async #guarded<T>(send: () => Promise<T>, owner?: string): Promise<T> {
    const { status, stream } = this.#redis;
    if (status !== 'ready' || !stream.writable) {
      throw new NotExecuted(`Redis can't be reached (connection is ${status})`);
    }
    this.#cork();
    const { answerWithinMs } = this.#times;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new OutcomeUnknown(`no reply from Redis within ${answerWithinMs} ms`));
        this.#redis.disconnect(true);
      }, answerWithinMs);
      send().then(
        (reply) => {
          clearTimeout(timer);
          resolve(reply);
        },
        (error: unknown) => {
          clearTimeout(timer);
          reject(this.#sorted(error, owner));
        },
      );
    });
  }

  #sorted(error: unknown, owner: string | undefined): Error {
    const message = replyReason(error);
    if (DEMOTED.test(message)) this.#redis.disconnect(true);
    if (isRedirect(message)) return new LockMoved(`the lock is on another server: ${message}`, owner, error);
    if (isRefusal(message)) return new NotExecuted(`Redis refused the lock command: ${message}`, error);
    if (error instanceof Error && error.name === 'ReplyError') {
      return new BackendCorrupt(`a lock script failed: ${message}`);
    }
    return new OutcomeUnknown(`the reply to a lock command was lost: ${message}`, error);
  }
}
