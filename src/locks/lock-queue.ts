/**
 * One lock in one process: its holder, if this process has it, and the callers that wait for it (waiters.ts).
 *
 *   free ──a caller comes──> seeking ──acquired──> held here ──released, no caller waits──> free
 *                              │ ▲                  │ │ ──released, a caller waits──> passed on: held here
 *                   refused    ▼ │ message, poll    │ ──the same, after KEEP_MAX_MS──> released, then seeking
 *                             asleep                │ ──lost──> seeking
 *
 * A process has one attempt under way in Redis. Whichever caller is first when it succeeds gets the lock, so the owner in
 * Redis belongs to the attempt and not to a caller. An attempt whose reply was lost is repeated with the same owner, and
 * adopts the lock if it got it. If no caller waits any more, the lock is released.
 */
import { OutcomeUnknown } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { type Acquired, Holder, type HolderHost } from './holder.ts';
import { isTemporary, LockCommands } from './lock-commands.ts';
import type { LockConnection } from './lock-connection.ts';
import { LOCKS_CLOSED, LockNotAcquired } from './lock-errors.ts';
import type { LockHandle } from './lock-handle.ts';
import type { LockKeys } from './lock-keys.ts';
import { KEEP_MAX_MS, type LockTimes, RETRY_PAUSE_MS, YIELD_MS } from './lock-limits.ts';
import { ReleaseSignal } from './release-signal.ts';
import { Waiters, type WaitOptions } from './waiters.ts';
import type { Wakeups } from './wakeups.ts';

/** What a queue needs of the process that it lives in. */
export interface QueueHost {
  readonly connection: LockConnection;
  readonly wakeups: Wakeups;
  readonly times: LockTimes;
  /** Different from every other owner, of any process. */
  nextOwner(): string;
  /** This process neither holds the lock nor waits for it. */
  idle(): void;
}

export class LockQueue implements HolderHost {
  readonly #name: string;
  readonly #host: QueueHost;
  readonly #commands: LockCommands;
  readonly #released: ReleaseSignal;
  readonly #waiters: Waiters;
  #holder: Holder | undefined;
  /** The lock is being acquired or passed on. */
  #busy = false;
  #work: Promise<void> | undefined;
  #closed = false;
  /** Since when this process has had the lock without a break. */
  #keptSince = 0;

  constructor(name: string, keys: LockKeys, host: QueueHost) {
    this.#name = name;
    this.#host = host;
    this.#commands = new LockCommands(host.connection, keys);
    this.#released = new ReleaseSignal(host.wakeups, keys.channel);
    this.#waiters = new Waiters(name, () => this.#released.notify());
  }

  /** @throws LockNotAcquired; NotExecuted (`tryOnce` only); BackendCorrupt; the signal's reason */
  async wait(options: WaitOptions): Promise<LockHandle | undefined> {
    if (options.tryOnce && (this.#holder || this.#waiters.waiting > 0)) return undefined;
    const granted = this.#waiters.add(options);
    this.#pump();
    return granted;
  }

  isHeldBy(handle: LockHandle): boolean {
    return this.#holder?.handle === handle && handle.held;
  }

  /** For the holder's lease. */
  renew({ owner }: Holder): Promise<boolean> {
    return this.#commands.renew(owner);
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
    if (this.#waiters.waiting > 0) {
      if (monotonicMs() - this.#keptSince < KEEP_MAX_MS) return this.#passOn(holder);
      return this.#releaseAndYield(holder);
    }
    try {
      return (await this.#commands.giveBack(holder.owner, holder.lease.trustedUntil)) >= 0;
    } finally {
      this.#pump();
    }
  }

  /** Rejects the waiters and releases the lock. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#commands.close();
    this.#waiters.refuseAll(new LockNotAcquired(this.#name, LOCKS_CLOSED));
    await this.#work;
    const holder = this.#holder;
    if (!holder) return;
    holder.lease.end();
    holder.handle.lose(LOCKS_CLOSED);
    await this.#commands.giveBack(holder.owner, monotonicMs()).catch(() => {});
  }

  #pump(): void {
    if (this.#busy || this.#holder || this.#closed) return;
    if (this.#waiters.waiting > 0) {
      this.#occupy(this.#seek(this.#host.nextOwner()));
      return;
    }
    this.#released.leave();
    this.#host.idle();
  }

  /** Runs the one attempt of this process. If it throws, all waiters are rejected with the error. */
  #occupy(work: Promise<void>): void {
    this.#busy = true;
    const over = () => {
      this.#busy = false;
      this.#pump();
    };
    this.#work = work.then(over, (error) => {
      this.#waiters.refuseAll(error);
      over();
    });
  }

  /** Tries until a caller has the lock, or until no caller waits and this owner surely does not have it. */
  async #seek(owner: string): Promise<void> {
    let unknownUntil = 0;
    this.#released.joinIfActive();
    while (this.#waiters.waiting > 0 || monotonicMs() < unknownUntil) {
      this.#released.reset();
      try {
        if (this.#waiters.waiting === 0) return await this.#commands.release(owner);
        const sentAt = monotonicMs();
        const reply = await this.#commands.acquire(owner);
        unknownUntil = 0;
        this.#waiters.fault = undefined;
        if (reply.held) {
          this.#keptSince = sentAt;
          return await this.#grant({ owner, token: reply.token, sentAt });
        }
        this.#waiters.firstTryingOnce()?.grant(undefined);
        await this.#released.untilReleased(reply.expiresInMs);
      } catch (error) {
        if (!isTemporary(error)) throw error;
        if (this.#closed) return;
        if (error instanceof OutcomeUnknown) unknownUntil = monotonicMs() + this.#host.times.ttlMs;
        this.#waiters.fault = error;
        this.#waiters.firstTryingOnce()?.failed(error);
        await this.#released.sleep(RETRY_PAUSE_MS);
      }
    }
  }

  /** Gives the lock to the first waiter. Without one, releases it. */
  async #grant(got: Acquired): Promise<void> {
    const { times } = this.#host;
    const waiter = this.#closed ? undefined : this.#waiters.first();
    if (!waiter) {
      await this.#commands.giveBack(got.owner, got.sentAt + times.trustMs);
      return;
    }
    this.#holder = new Holder(this, this.#name, got, times);
    waiter.grant(this.#holder.handle);
  }

  /** @returns false if the lock turned out to be lost before */
  async #passOn({ owner: from, lease }: Holder): Promise<boolean> {
    const owner = this.#host.nextOwner();
    const answer = this.#commands.passOn(from, owner, lease.trustedUntil);
    this.#occupy(
      answer.then((sent) =>
        sent?.reply.held
          ? this.#grant({ owner, token: sent.reply.token, sentAt: sent.sentAt })
          : this.#seek(owner),
      ),
    );
    const sent = await answer;
    // Without a reply it is unknown whether the lock was lost. The holder could trust it to the end; the next waiter
    // acquires it from Redis.
    return sent === undefined || (sent.reply.held && sent.reply.previous === from);
  }

  /** The message wakes waiters of other processes; the waiters of this process let them go first. */
  async #releaseAndYield(holder: Holder): Promise<boolean> {
    const released = this.#commands.giveBack(holder.owner, holder.lease.trustedUntil);
    const seekLater = async () => {
      const others = (await released) - (this.#released.joined ? 1 : 0);
      if (others > 0) await new Promise((resolve) => setTimeout(resolve, YIELD_MS));
      await this.#seek(this.#host.nextOwner());
    };
    this.#occupy(seekLater());
    return (await released) >= 0;
  }
}
