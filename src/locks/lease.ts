/**
 * The time for which a holder may trust its lock, and the watchdog that prolongs it.
 *
 *   trusted ──renewal confirmed──> trusted, from when the renewal was sent
 *     │ ──renewal refused──> lost
 *     │ ──none confirmed within `trustMs` of our own monotonic clock──> lost, before Redis lets go of it
 *     │ ──ended by the holder──> over
 *
 * What is not trusted any more is never trusted again: its holder may have given up by then, and a lock that went on being
 * renewed would be held for nobody. So a confirmation that comes behind the time changes nothing.
 *
 * A process that was frozen finds `trusted` false as soon as it runs again, before any timer has fired. It may still be
 * frozen between asking and writing: against that the fencing token helps, and nothing else.
 */
import { BackendCorrupt } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { type LockTimes, RETRY_PAUSE_MS } from './lock-limits.ts';

/** What a lease needs of its holder. */
export interface LeaseHost {
  /** @returns false if somebody else holds the lock, or nobody. @throws if that is not known */
  renew(): Promise<boolean>;
  /** Called once, at once. */
  lost(reason: string, cause?: unknown): void;
}

export class Lease {
  readonly #host: LeaseHost;
  readonly #times: LockTimes;
  #trustedUntil: number;
  #over = false;
  #renewal: NodeJS.Timeout;
  /** Runs from the first renewal on: no lock is renewed so late that its time could be over by then. */
  #expiry: NodeJS.Timeout | undefined;
  #lastFault: unknown;

  /** @param sentAt when the command that acquired the lock was sent, on the clock of `monotonicMs` */
  constructor(host: LeaseHost, times: LockTimes, sentAt: number) {
    this.#host = host;
    this.#times = times;
    this.#trustedUntil = sentAt + times.trustMs;
    this.#renewal = setTimeout(() => void this.#renew(), times.renewEveryMs);
    this.#renewal.unref();
  }

  get trusted(): boolean {
    return !this.#over && monotonicMs() < this.#trustedUntil;
  }

  get trustedUntil(): number {
    return this.#trustedUntil;
  }

  end(): void {
    this.#over = true;
    clearTimeout(this.#renewal);
    clearTimeout(this.#expiry);
  }

  async #renew(): Promise<void> {
    if (!this.#expiry) this.#expire();
    if (this.#over) return;
    const sentAt = monotonicMs();
    let pauseMs = this.#times.renewEveryMs;
    try {
      const renewed = await this.#host.renew();
      if (this.#over) return;
      if (!renewed) return this.#lose('the renewal was refused: somebody else holds it, or nobody');
      if (!this.trusted) return this.#lose(this.#overdue);
      this.#trustedUntil = sentAt + this.#times.trustMs;
    } catch (error) {
      if (this.#over) return;
      if (error instanceof BackendCorrupt) return this.#lose('it can’t be renewed', error);
      this.#lastFault = error;
      pauseMs = RETRY_PAUSE_MS;
    }
    this.#renewal = setTimeout(() => void this.#renew(), pauseMs);
    this.#renewal.unref();
  }

  #expire(): void {
    const leftMs = this.#trustedUntil - monotonicMs();
    if (leftMs <= 0) {
      this.#lose(this.#overdue, this.#lastFault);
      return;
    }
    this.#expiry = setTimeout(() => this.#expire(), leftMs);
    this.#expiry.unref();
  }

  get #overdue(): string {
    return `no renewal was confirmed within ${this.#times.trustMs} ms`;
  }

  #lose(reason: string, cause?: unknown): void {
    this.end();
    this.#host.lost(reason, cause);
  }
}
