/**
 * Deletions that operators request. Each goes on in the process that got the request, whether or not a client still
 * waits; Postgres has its progress. If the process dies or gives up, sync finishes it (deletion-finisher.ts).
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Backend } from '../engine/contract.ts';
import type { Author } from '../engine/sale/author.ts';
import type { Deletion } from '../operations/delete-operations.ts';
import { UnknownSale } from '../operations/sale-operations.ts';
import type { Database } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { readDeletion, readOpenDeletion } from '../sales/deleted-sales.ts';
import { beginDeletion } from './begin-deletion.ts';
import { finishDeletion } from './finish-deletion.ts';

const MAX_ATTEMPTS = 5;
const RETRY_MS = 1_000;

export class Deletions {
  readonly #db: Database;
  readonly #backend: Backend;
  readonly #locks: SaleLocks;
  /** The sales that this process is deleting. */
  readonly #running = new Set<string>();

  constructor(db: Database, backend: Backend, locks: SaleLocks) {
    this.#db = db;
    this.#backend = backend;
    this.#locks = locks;
  }

  /** Begins a deletion, or goes on with one. @throws as `DeleteOperations.delete` */
  async delete(saleId: string, orders: number, author: Author): Promise<Deletion> {
    try {
      await beginDeletion(this.#db, this.#backend, saleId, orders, author);
    } catch (error) {
      if (!(error instanceof UnknownSale)) throw error;
      if ((await readDeletion(this.#db, saleId)).state !== 'deleting') throw error;
    }
    void this.#run(saleId);
    return readDeletion(this.#db, saleId);
  }

  /** Never rejects: what fails here is left to sync. */
  async #run(saleId: string): Promise<void> {
    if (this.#running.has(saleId)) return;
    this.#running.add(saleId);
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      if (attempt > 1) await delay(RETRY_MS, undefined, { ref: false });
      const hasEnded = await this.#attempt(saleId).catch(() => false);
      if (hasEnded) break;
    }
    this.#running.delete(saleId);
  }

  async #attempt(saleId: string): Promise<boolean> {
    const sale = await readOpenDeletion(this.#db, saleId);
    return sale === undefined || finishDeletion(this.#db, this.#locks, sale);
  }
}
