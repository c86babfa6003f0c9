/**
 * The time for which a holder may trust its lock, and the watchdog that prolongs it.
 *
 *   trusted ──renewal confirmed──> trusted, counted from when the renewal was sent
 *     │ ──renewal refused──> lost
 *     │ ──no renewal confirmed within `trustMs` of the process's monotonic clock──> lost, before Redis frees the lock
 *     │ ──ended by the holder──> over
 *
 * A lease that was lost is never trusted again: the holder may have stopped by then, and a renewed lock would block
 * others for nothing. So a confirmation that arrives too late changes nothing.
 *
 * A process that was frozen finds `trusted` false as soon as it runs again, before any timer has fired. It may still
 * freeze between the check and the write: only the fencing token protects against that.
 */
import { BackendCorrupt } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { LockMoved } from './lock-errors.ts';
import { type LockTimes, RETRY_PAUSE_MS } from './lock-limits.ts';

/** What a lease needs of its holder. */
export interface LeaseHost {
  /** @returns false if another owner holds the lock, or none. @throws if the outcome is unknown */
  renew(): Promise<boolean>;
  /** Called once, as soon as the lock is lost. */
  lost(reason: string, cause?: unknown): void;
}

export class Lease {
  readonly #host: LeaseHost;
  readonly #times: LockTimes;
  #trustedUntil: number;
  #over = false;
  #renewal: NodeJS.Timeout;
  /** Runs from the first renewal on: that renewal is sent long before the lease can expire. */
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
      if (!renewed) return this.#lose('the renewal was refused: another owner holds it, or none');
      if (!this.trusted) return this.#lose(this.#overdue);
      this.#trustedUntil = sentAt + this.#times.trustMs;
    } catch (error) {
      if (this.#over) return;
      if (error instanceof BackendCorrupt || error instanceof LockMoved)
        return this.#lose('Redis can’t renew it', error);
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
