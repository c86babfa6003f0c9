/** What operators do with order events that the webhook did not take. Done in place, or through a node's ops port. */
import { StockadeError } from '../../engine/errors.ts';
import type { Database } from '../database.ts';
import { type DeadLetter, WebhookQueue } from './webhook-queue.ts';

export interface DeadLetters {
  /** All that there are; those that are listed are the oldest. */
  readonly total: number;
  readonly listed: readonly DeadLetter[];
}

export interface EventOperations {
  deadLetters(): Promise<DeadLetters>;
  /** It is delivered next, before anything younger. @throws UnknownDeadLetter, or an error of its code */
  resendDeadLetter(id: string): Promise<void>;
  /** The same with all of them. @returns how many */
  resendAllDeadLetters(): Promise<number>;
}

export class UnknownDeadLetter extends StockadeError {
  constructor(id: string) {
    super('unknown_dead_letter', `there is no dead letter ${id}; it may have been re-sent already`);
  }
}

const MAX_ID = 2n ** 63n - 1n;

export class EventService implements EventOperations {
  readonly #queue: WebhookQueue;

  constructor(db: Database) {
    this.#queue = new WebhookQueue(db);
  }

  async deadLetters(): Promise<DeadLetters> {
    const listed = await this.#queue.deadLetters();
    return { total: Math.max(await this.#queue.deadPages(), listed.length), listed };
  }

  async resendDeadLetter(id: string): Promise<void> {
    const isId = /^\d{1,19}$/.test(id) && BigInt(id) <= MAX_ID;
    if (!isId || (await this.#queue.resend(id)) === 0) throw new UnknownDeadLetter(id);
  }

  resendAllDeadLetters(): Promise<number> {
    return this.#queue.resend();
  }
}
