/** The operators' work on dead letters, on the database directly. */
import { type DeadLetters, type EventOperations, UnknownDeadLetter } from '../operations/event-operations.ts';
import type { Database } from '../postgres/database.ts';
import { WebhookQueue } from './webhook-queue.ts';

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
