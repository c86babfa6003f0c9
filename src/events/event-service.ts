/** The operators' work on dead letters, on the database directly. */
import { isRowId, type PageQuery } from '../operations/checked-input.ts';
import { type DeadLetters, type EventOperations, UnknownDeadLetter } from '../operations/event-operations.ts';
import type { Database } from '../postgres/database.ts';
import { WebhookQueue } from './webhook-queue.ts';

export class EventService implements EventOperations {
  readonly #queue: WebhookQueue;

  constructor(db: Database) {
    this.#queue = new WebhookQueue(db);
  }

  async deadLetters(query?: PageQuery): Promise<DeadLetters> {
    const { listed, next } = await this.#queue.deadLetters(query);
    return { total: Math.max(await this.#queue.deadPages(), listed.length), listed, next };
  }

  async resendDeadLetter(id: string): Promise<void> {
    if (!isRowId(id) || (await this.#queue.resend(id)) === 0) throw new UnknownDeadLetter(id);
  }

  resendAllDeadLetters(): Promise<number> {
    return this.#queue.resend();
  }
}
