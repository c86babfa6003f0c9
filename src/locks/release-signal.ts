import { FALLBACK_POLL_MS } from './lock-limits.ts';
import type { Wakeups } from './wakeups.ts';

/** Ends the sleep of a lock's queue when a release of that lock is published, or when `notify` is called. */
export class ReleaseSignal {
  readonly #wakeups: Wakeups;
  readonly #channel: string;
  #joined = false;
  #notified = false;
  #wake: (() => void) | undefined;

  constructor(wakeups: Wakeups, channel: string) {
    this.#wakeups = wakeups;
    this.#channel = channel;
  }

  /** Whether this process listens to the channel, and so counts among the listeners of a release. */
  get joined(): boolean {
    return this.#joined;
  }

  /**
   * Listens if the subscription is active. Otherwise a refused attempt would have to be repeated once it is, because
   * earlier messages were missed.
   */
  joinIfActive(): void {
    if (this.#wakeups.hears(this.#channel)) this.#join();
  }

  /** Forgets earlier notifications: only later ones end a sleep. */
  reset(): void {
    this.#notified = false;
  }

  /** @param expiresInMs until the holder's ttl ends; negative: unknown */
  untilReleased(expiresInMs: number): Promise<void> {
    this.#join();
    return this.sleep(expiresInMs < 0 ? FALLBACK_POLL_MS : Math.min(expiresInMs + 1, FALLBACK_POLL_MS));
  }

  async sleep(ms: number): Promise<void> {
    if (this.#notified) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    this.#wake = undefined;
  }

  notify(): void {
    this.#notified = true;
    this.#wake?.();
  }

  leave(): void {
    if (this.#joined) this.#wakeups.leave(this.#channel);
    this.#joined = false;
  }

  #join(): void {
    if (this.#joined) return;
    this.#joined = true;
    this.#wakeups.join(this.#channel, () => this.notify());
  }
}
