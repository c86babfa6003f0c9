/**
 * Wakes waiters by messages: a process that waits for a lock sleeps until its holder announces the release.
 *
 * A message wakes one waiter of each node, the one that has waited longest. That waiter tries to acquire the lock. If another one
 * was faster, the release of that one is another message. So no release goes unnoticed.
 */
import type { Redis } from 'ioredis';

export interface Bell {
  /** Aborts when it rings. */
  readonly signal: AbortSignal;
  leave(): void;
}

export class Bells {
  readonly #subscriber: Redis;
  readonly #waiters = new Map<string, Set<AbortController>>();
  readonly #subscribed = new Map<string, Promise<unknown>>();

  constructor(subscriber: Redis) {
    this.#subscriber = subscriber;
    subscriber.on('message', (channel: string) => this.#ringFirst(channel));
  }

  /** Every message from now on rings some bell of the channel. */
  async listen(channel: string): Promise<Bell> {
    if (!this.#subscribed.has(channel)) {
      this.#waiters.set(channel, new Set());
      this.#subscribed.set(channel, this.#subscriber.subscribe(channel));
    }
    await this.#subscribed.get(channel);
    const waiters = this.#waiters.get(channel)!;
    const bell = new AbortController();
    waiters.add(bell);
    return { signal: bell.signal, leave: () => waiters.delete(bell) };
  }

  #ringFirst(channel: string): void {
    const waiters = this.#waiters.get(channel)!;
    for (const bell of waiters) {
      waiters.delete(bell);
      bell.abort();
      return;
    }
  }
}
