import { setTimeout as delay, setImmediate as nextTurnOfLoop } from 'node:timers/promises';
import { monotonicMs } from '../../lib/monotonic.ts';
import { Connections } from './connections.ts';
import { DeferredReplies } from './deferred-replies.ts';

/** Counts the requests under way on one port, so that a shutdown can wait until they are answered. */
export class Traffic {
  #active = 0;
  #begun = 0;
  #whenIdle: (() => void) | undefined;
  readonly connections: Connections;
  readonly deferred = new DeferredReplies();
  /** Set by a shutdown: each answer then closes its connection. */
  draining = false;

  constructor(connections = new Connections()) {
    this.connections = connections;
  }

  get active(): number {
    return this.#active;
  }

  begin(): void {
    this.#active++;
    this.#begun++;
  }

  end(): void {
    if (--this.#active === 0) this.#whenIdle?.();
  }

  /** Resolves when no request has been under way for `quietMs`, or after `timeoutMs`. */
  async quiet(quietMs: number, timeoutMs: number): Promise<void> {
    const deadline = monotonicMs() + timeoutMs;
    for (let seen = -1; seen !== this.#begun && monotonicMs() < deadline; ) {
      await this.#idle(deadline - monotonicMs());
      seen = this.#begun;
      await delay(Math.min(quietMs, Math.max(0, deadline - monotonicMs())));
      // On a busy machine, the thread may not have run for all this time. Then its timers come before what has arrived meanwhile.
      await nextTurnOfLoop();
    }
  }

  #idle(timeoutMs: number): Promise<void> {
    if (this.#active === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#whenIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
