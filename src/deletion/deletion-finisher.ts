/**
 * Finishes deletions whose process has died or has given up. It runs beside sync; several processes may do this at
 * once. Nothing is kept in memory, so if a process dies, the next round of any process goes on.
 */
import { rest } from '../lib/rest.ts';
import type { Database } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { readOpenDeletions } from '../sales/deleted-sales.ts';
import { finishDeletion } from './finish-deletion.ts';

const ROUND_EVERY_MS = 10_000;

export interface FinisherEvents {
  deleted(info: { saleId: string }): void;
  /** A deletion, or the whole round if no sale is named, has failed and is tried again. */
  failed(info: { saleId?: string; error: unknown }): void;
}

export interface FinisherOptions {
  readonly db: Database;
  readonly locks: SaleLocks;
  readonly events: FinisherEvents;
  readonly everyMs?: number;
}

export class DeletionFinisher {
  readonly #options: FinisherOptions;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: FinisherOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#keepRunning();
  }

  /** Ends after the page under way. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #keepRunning(): Promise<void> {
    const { everyMs = ROUND_EVERY_MS, events } = this.#options;
    const { signal } = this.#end;
    while (!signal.aborted) {
      await this.#round().catch((error) => events.failed({ error }));
      await rest(everyMs, signal);
    }
  }

  async #round(): Promise<void> {
    const { db, locks, events } = this.#options;
    const { signal } = this.#end;
    for (const sale of await readOpenDeletions(db)) {
      if (signal.aborted) return;
      const { saleId } = sale;
      await finishDeletion(db, locks, sale, signal).then(
        (isDeleted) => isDeleted && events.deleted({ saleId }),
        (error) => events.failed({ saleId, error }),
      );
    }
  }
}
