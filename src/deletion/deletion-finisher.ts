/**
 * Finishes deletions whose process has died or has given up. It runs beside sync; several processes may do this at
 * once. Nothing is kept in memory, so if a process dies, the next round of any process goes on.
 */
import { Rounds } from '../lib/rounds.ts';
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
  readonly #rounds: Rounds;

  constructor(options: FinisherOptions) {
    const { everyMs = ROUND_EVERY_MS, events } = options;
    this.#options = options;
    this.#rounds = new Rounds({
      everyMs,
      round: (signal) => this.#round(signal),
      failed: (error) => events.failed({ error }),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  /** Ends after the page under way. */
  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  async #round(signal: AbortSignal): Promise<false> {
    const { db, locks, events } = this.#options;
    for (const sale of await readOpenDeletions(db)) {
      if (signal.aborted) break;
      const { saleId } = sale;
      await finishDeletion(db, locks, sale, signal).then(
        (isDeleted) => isDeleted && events.deleted({ saleId }),
        (error) => events.failed({ saleId, error }),
      );
    }
    return false;
  }
}
