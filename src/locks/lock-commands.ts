/** The commands on one lock, repeated while Redis does not answer. All of them name the owner, so a repeat does no harm. */
import { NotExecuted, OutcomeUnknown } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { LockConnection } from './lock-connection.ts';
import type { LockKeys } from './lock-keys.ts';
import { RETRY_PAUSE_MS } from './lock-limits.ts';
import type { AcquireReply } from './lock-scripts.ts';

export class LockCommands {
  readonly #connection: LockConnection;
  readonly #keys: LockKeys;
  #closed = false;

  constructor(connection: LockConnection, keys: LockKeys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** One attempt. @throws as `LockConnection.renew` */
  acquire(owner: string): Promise<AcquireReply> {
    return this.#connection.acquire(this.#keys, owner);
  }

  /** One attempt. @throws as `LockConnection.renew` */
  renew(owner: string): Promise<boolean> {
    return this.#connection.renew(this.#keys, owner);
  }

  /** One attempt. @throws as `LockConnection.renew` */
  async release(owner: string): Promise<void> {
    await this.#connection.release(this.#keys, owner);
  }

  /**
   * Passes the lock from one owner to the next, in one command and without waking other processes.
   * @returns the reply and when its command was sent; `undefined` without a reply before `untilMs`
   */
  async passOn(from: string, to: string, untilMs: number): Promise<Sent<AcquireReply> | undefined> {
    let sentAt = 0;
    const reply = await this.#retryUntil(untilMs, () => {
      sentAt = monotonicMs();
      return this.#connection.acquire(this.#keys, to, from);
    });
    return reply && { reply, sentAt };
  }

  /**
   * Releases the lock. @param untilMs when the owner's ttl is over
   * @returns how many processes listen for the release; -1 if another owner held the lock, or none. 0 also if the number
   * is unknown, because Redis did not answer in time or answered only a repeat of the command
   */
  async giveBack(owner: string, untilMs: number): Promise<number> {
    let outcomeUnknown = false;
    const listeners = await this.#retryUntil(untilMs, async () => {
      try {
        return await this.#connection.release(this.#keys, owner);
      } catch (error) {
        outcomeUnknown ||= error instanceof OutcomeUnknown;
        throw error;
      }
    });
    return outcomeUnknown ? Math.max(0, listeners ?? 0) : (listeners ?? 0);
  }

  /** From now on a failed command is not repeated. */
  close(): void {
    this.#closed = true;
  }

  async #retryUntil<T>(untilMs: number, send: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await send();
      } catch (error) {
        if (!isTemporary(error)) throw error;
        if (this.#closed || monotonicMs() + RETRY_PAUSE_MS >= untilMs) return undefined;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
    }
  }
}

/** A reply, and when its command was sent, on the clock of `monotonicMs`. */
export interface Sent<T> {
  readonly reply: T;
  readonly sentAt: number;
}

/** Whether the command may be sent again: Redis could not be reached, or its reply was lost. */
export function isTemporary(error: unknown): boolean {
  return error instanceof NotExecuted || error instanceof OutcomeUnknown;
}
