/**
 * Rebuilds of sales beside the loop: one that takes long (many buyers to load, a row that somebody has locked) does not
 * keep the other sales' orders from Postgres.
 *
 *   in line ──a place is free──> under way ──> let go of, and hinted: the loop takes it up with new cursors
 *      └──sync stops, or another has rebuilt it──> let go of
 *
 * From the first to the last the sale is out of the loop and its lock is held. So nothing of it is read, applied or told
 * here meanwhile, and no other sync begins the same. Both only spare work: what keeps the data right is in rebuild.ts, and
 * holds with or without them. A lock that is lost on the way shows in the generation, which is compared when a place is
 * free.
 *
 * A rebuild that fails, for whatever reason, is that sale's failure, and it is tried again later: if Postgres or the backend
 * is away, the loop finds that out by itself.
 */
import pLimit from 'p-limit';
import { StaleGeneration } from '../engine/errors.ts';
import type { Hints } from './hints.ts';
import { rebuildSale } from './rebuild.ts';
import type { SaleLog } from './sale-log.ts';
import { readSale } from './sale-rows.ts';
import type { SyncStores } from './sync-stores.ts';

/**
 * One that hangs leaves a place to the others, and both leave the loop connections of the pool to Postgres. PGlite has one
 * session only: there a rebuild waits for nobody, but the loop for each of its statements.
 */
const PARALLEL_REBUILDS = 2;

export class Rebuilds {
  readonly #stores: SyncStores;
  readonly #hints: Hints;
  readonly #setAside: (saleId: string, error: unknown) => void;
  readonly #limit = pLimit(PARALLEL_REBUILDS);
  /** Under way or in line. */
  readonly #begun = new Map<string, Promise<void>>();
  #stopping = false;

  /** @param setAside is told of sales whose rebuild has failed */
  constructor(stores: SyncStores, hints: Hints, setAside: (saleId: string, error: unknown) => void) {
    this.#stores = stores;
    this.#hints = hints;
    this.#setAside = setAside;
  }

  has(saleId: string): boolean {
    return this.#begun.has(saleId);
  }

  /** Only with the sale's lock, which is let go of at the end. */
  begin(log: SaleLog, why: string): void {
    const { saleId } = log;
    const ended = this.#limit(() => this.#rebuild(log, why))
      .catch((error) => {
        // Else another was faster.
        if (!(error instanceof StaleGeneration)) this.#setAside(saleId, error);
      })
      .finally(() => this.#letGo(saleId));
    this.#begun.set(saleId, ended);
  }

  /** Resolves when all that have begun by now have ended, well or not. */
  async ended(): Promise<void> {
    await Promise.all(this.#begun.values());
  }

  /** Resolves when those under way have ended; those in line are left to the next sync. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.ended();
  }

  async #rebuild({ saleId, generation, newest }: SaleLog, why: string): Promise<void> {
    if (this.#stopping) return;
    const { db, backend, events } = this.#stores;
    if ((await readSale(db, saleId))?.generation !== generation) return;
    const report = await rebuildSale(db, backend, saleId, {
      newest,
      ordersLost: (loss) => events.ordersLost({ saleId, ...loss }),
    });
    if (!report) return;
    const { rejected, ...built } = report;
    for (const rejection of rejected) events.rejected({ saleId, ...rejection });
    // An in-process backend has held nothing at its start, and loses nothing afterwards.
    events.rebuilt({ saleId, why, again: generation > 0 && backend.durable, ...built });
  }

  async #letGo(saleId: string): Promise<void> {
    await this.#stores.locks.unlock(saleId).catch(() => {});
    this.#begun.delete(saleId);
    this.#hints.add(saleId);
  }
}
