/**
 * One lock in one process: its holder, if that is here, and those who wait, first come first served.
 *
 *   free ──somebody comes──> seeking ──held──> held here ──released, nobody waits──> free
 *                              │ ▲                │ │ ──released, somebody waits──> handed over: held here
 *                   refused    ▼ │ message, poll  │ ──the same, kept for long enough──> released, then seeking
 *                             asleep              │ ──lost──> seeking
 *
 * Only one attempt of a process is under way in Redis, on behalf of whoever is first when it succeeds; so its owner is
 * the attempt's and not a waiter's. An attempt whose reply was lost is repeated with the same owner, and adopts what it
 * may have got. An attempt that nobody waits for any more is taken back.
 */
import { NotExecuted, OutcomeUnknown } from '../engine/errors.ts';
import { Fifo } from '../lib/fifo.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { type Got, Holder, type HolderHost } from './holder.ts';
import type { LockConnection } from './lock-connection.ts';
import { LockNotAcquired } from './lock-errors.ts';
import type { LockHandle } from './lock-handle.ts';
import type { LockKeys } from './lock-keys.ts';
import {
  FALLBACK_POLL_MS,
  KEEP_MAX_MS,
  type LockTimes,
  MAX_WAITERS,
  RETRY_PAUSE_MS,
  YIELD_MS,
} from './lock-limits.ts';
import { type Place, Waiter, type WaitOptions } from './waiter.ts';
import type { Wakeups } from './wakeups.ts';

/** So many who don't wait any more may stand in a queue, besides as many as wait. */
const GONE_WAITERS = 64;

/** What a queue needs of the process that it lives in. */
export interface QueueHost {
  readonly connection: LockConnection;
  readonly wakeups: Wakeups;
  readonly times: LockTimes;
  /** Different from every other owner, of any process. */
  nextOwner(): string;
  /** Nobody holds the lock here, and nobody waits. */
  idle(): void;
}

export class LockQueue implements Place, HolderHost {
  readonly #name: string;
  readonly #keys: LockKeys;
  readonly #host: QueueHost;
  readonly #waiters = new Fifo<Waiter>();
  #live = 0;
  #holder: Holder | undefined;
  /** The lock is being sought or passed on. */
  #busy = false;
  #work: Promise<void> | undefined;
  #closed = false;
  #joined = false;
  #heard = false;
  #wake: (() => void) | undefined;
  #fault: unknown;
  /** Since when this process has had the lock without a break. */
  #keptSince = 0;

  constructor(name: string, keys: LockKeys, host: QueueHost) {
    this.#name = name;
    this.#keys = keys;
    this.#host = host;
  }

  /** @throws LockNotAcquired; NotExecuted (hasty only); BackendCorrupt; the signal's reason */
  async wait(options: WaitOptions): Promise<LockHandle | undefined> {
    if (options.tryOnce && (this.#holder || this.#live > 0)) return undefined;
    if (this.#live >= MAX_WAITERS) throw new LockNotAcquired(this.#name, `${MAX_WAITERS} wait for it here`);
    this.#live++;
    const waiter = new Waiter(this.#name, options, this);
    this.#waiters.push(waiter);
    this.#pump();
    return waiter.granted;
  }

  /** For a waiter, who is settled. Those who have gone must not pile up behind one who stays. */
  gone(): void {
    this.#live--;
    if (this.#waiters.length > 2 * this.#live + GONE_WAITERS) this.#waiters.keep(({ settled }) => !settled);
    if (this.#live === 0) this.#notify();
  }

  /** For a waiter, whose time is over: why the last attempt has failed, if it has. */
  get fault(): unknown {
    return this.#fault;
  }

  /** For the holder's lease. */
  renew({ owner }: Holder): Promise<boolean> {
    return this.#host.connection.renew(this.#keys, owner);
  }

  /** For the holder's lease. */
  lost(holder: Holder, reason: string, cause: unknown): void {
    if (this.#holder === holder) this.#holder = undefined;
    holder.handle.lose(reason, cause);
    this.#pump();
  }

  /** For the holder's handle. @returns false if the lock turned out to be lost */
  async release(holder: Holder): Promise<boolean> {
    holder.lease.end();
    this.#holder = undefined;
    if (this.#live > 0) {
      if (monotonicMs() - this.#keptSince < KEEP_MAX_MS) return this.#handOver(holder);
      return this.#releaseAndYield(holder);
    }
    const listeners = await this.#giveBack(holder.owner, holder.lease.trustedUntil);
    this.#pump();
    return listeners >= 0;
  }

  /** Refuses those who wait, and gives the lock back. */
  async close(): Promise<void> {
    this.#closed = true;
    const closed = 'the locks of this process were closed';
    this.#refuseAll(new LockNotAcquired(this.#name, closed));
    await this.#work;
    const holder = this.#holder;
    if (!holder) return;
    holder.lease.end();
    holder.handle.lose(closed);
    await this.#giveBack(holder.owner, monotonicMs()).catch(() => {});
  }

  #pump(): void {
    if (this.#busy || this.#holder || this.#closed) return;
    if (this.#live > 0) this.#occupy(this.#seek(this.#host.nextOwner()));
    else this.#leave();
  }

  /** What a seek throws has been told to those who waited. */
  #occupy(work: Promise<void>): void {
    this.#busy = true;
    const over = () => {
      this.#busy = false;
      this.#pump();
    };
    this.#work = work.then(over, (error) => {
      this.#refuseAll(error);
      over();
    });
  }

  /** Asks until somebody has the lock, or nobody wants it any more and it is certain that this owner has not got it. */
  async #seek(owner: string): Promise<void> {
    let unknownUntil = 0;
    // Else a refusal would have to be followed by another attempt: what was told in between was told to nobody.
    if (this.#host.wakeups.hears(this.#keys.channel)) this.#join();
    while (this.#live > 0 || monotonicMs() < unknownUntil) {
      this.#heard = false;
      try {
        if (this.#live === 0) {
          await this.#host.connection.release(this.#keys, owner);
          return;
        }
        const sentAt = monotonicMs();
        const reply = await this.#host.connection.acquire(this.#keys, owner);
        unknownUntil = 0;
        this.#fault = undefined;
        if (reply.held) {
          this.#keptSince = sentAt;
          return await this.#pass({ owner, token: reply.token, sentAt });
        }
        this.#firstTryingOnce()?.grant(undefined);
        await this.#untilWoken(reply.expiresInMs);
      } catch (error) {
        if (!isPassing(error)) throw error;
        if (this.#closed) return;
        if (error instanceof OutcomeUnknown) unknownUntil = monotonicMs() + this.#host.times.ttlMs;
        this.#fault = error;
        this.#firstTryingOnce()?.failed(error);
        await this.#sleep(RETRY_PAUSE_MS);
      }
    }
  }

  /** To the first who still waits; back, if there is none. */
  async #pass(got: Got): Promise<void> {
    const { times } = this.#host;
    const waiter = this.#closed ? undefined : this.#first();
    if (!waiter) {
      await this.#giveBack(got.owner, got.sentAt + times.trustMs);
      return;
    }
    this.#holder = new Holder(this, this.#name, got, times);
    waiter.grant(this.#holder.handle);
  }

  /** One command instead of two, and nobody is woken in vain. */
  async #handOver({ owner: from, lease }: Holder): Promise<boolean> {
    const owner = this.#host.nextOwner();
    let sentAt = 0;
    const answer = this.#retryUntil(() => {
      sentAt = monotonicMs();
      return this.#host.connection.acquire(this.#keys, owner, from);
    }, lease.trustedUntil);
    this.#occupy(
      answer.then((reply) =>
        reply?.held ? this.#pass({ owner, token: reply.token, sentAt }) : this.#seek(owner),
      ),
    );
    const reply = await answer;
    // Without a reply nobody knows. The holder could trust its lock to the end; whoever is next asks again.
    return reply === undefined || (reply.held && reply.previous === from);
  }

  /** The message wakes those who wait elsewhere; those who wait here let them go first. */
  async #releaseAndYield(holder: Holder): Promise<boolean> {
    const released = this.#giveBack(holder.owner, holder.lease.trustedUntil);
    const seekLater = async () => {
      const others = (await released) - (this.#joined ? 1 : 0);
      if (others > 0) await new Promise((resolve) => setTimeout(resolve, YIELD_MS));
      await this.#seek(this.#host.nextOwner());
    };
    this.#occupy(seekLater());
    return (await released) >= 0;
  }

  /**
   * @returns how many listen for it; 0 also if nobody knows whether it was still held: without a reply before its ttl is
   * over, or behind an attempt whose reply was lost; -1 if somebody else held it, or nobody
   */
  async #giveBack(owner: string, untilMs: number): Promise<number> {
    let outcomeUnknown = false;
    const release = async () => {
      try {
        return await this.#host.connection.release(this.#keys, owner);
      } catch (error) {
        outcomeUnknown ||= error instanceof OutcomeUnknown;
        throw error;
      }
    };
    const listeners = (await this.#retryUntil(release, untilMs)) ?? 0;
    return outcomeUnknown ? Math.max(0, listeners) : listeners;
  }

  /** Sends a command until it is answered, or its time is over. */
  async #retryUntil<T>(send: () => Promise<T>, untilMs: number): Promise<T | undefined> {
    for (;;) {
      try {
        return await send();
      } catch (error) {
        if (!isPassing(error)) throw error;
        if (this.#closed || monotonicMs() + RETRY_PAUSE_MS >= untilMs) return undefined;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
    }
  }

  /** The first who still waits. Those who don't wait any more leave the queue. */
  #first(): Waiter | undefined {
    while (this.#waiters.peek()?.settled) this.#waiters.shift();
    return this.#waiters.peek();
  }

  /** Who is hasty came when nobody else was there. */
  #firstTryingOnce(): Waiter | undefined {
    const first = this.#first();
    return first?.hasty ? first : undefined;
  }

  #refuseAll(error: unknown): void {
    for (let waiter = this.#waiters.shift(); waiter; waiter = this.#waiters.shift()) waiter.refuse(error);
  }

  #untilWoken(expiresInMs: number): Promise<void> {
    this.#join();
    const pollMs = expiresInMs < 0 ? FALLBACK_POLL_MS : Math.min(expiresInMs + 1, FALLBACK_POLL_MS);
    return this.#sleep(pollMs);
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#heard) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    this.#wake = undefined;
  }

  #notify(): void {
    this.#heard = true;
    this.#wake?.();
  }

  #join(): void {
    if (this.#joined) return;
    this.#joined = true;
    this.#host.wakeups.join(this.#keys.channel, () => this.#notify());
  }

  #leave(): void {
    if (this.#joined) this.#host.wakeups.leave(this.#keys.channel);
    this.#joined = false;
    this.#host.idle();
  }
}

/** The command may be sent again: Redis could not be reached, or its reply was lost. */
function isPassing(error: unknown): boolean {
  return error instanceof NotExecuted || error instanceof OutcomeUnknown;
}
