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
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Rejection } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import type { Draft } from '../rebuild/draft.ts';
import type { Loss } from '../rebuild/losses.ts';
import { rebuildSale } from '../rebuild/rebuild.ts';
import { ifFreeToRebuild } from '../rebuild/rebuild-lock.ts';
import { readSale } from '../sales/sale-rows.ts';
import type { SaleLog } from './apply/sale-log.ts';
import type { Hints } from './hints.ts';
import type { SyncStores } from './sync-stores.ts';

/**
 * One that hangs leaves a place to the others, and both leave the loop connections of the pool to Postgres. PGlite has one
 * session only: there a rebuild waits for nobody, but the loop for each of its statements.
 */
const PARALLEL_REBUILDS = 2;
/** Somebody else rebuilds the sale, without its lock: an operator (recovery.ts). */
const LOOK_AGAIN_MS = 50;

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

  /**
   * Only with the sale's lock, which is let go of at the end.
   * @param draft an operator has asked for it: nothing is wrong, and the sale sells until then
   */
  begin(log: SaleLog, why: string, draft?: Draft): void {
    const { saleId } = log;
    const ended = this.#inTurn(log, why, draft)
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

  /** In a place of its own, which is given up while somebody else rebuilds the sale. */
  async #inTurn(log: SaleLog, why: string, draft?: Draft): Promise<void> {
    const { locks } = this.#stores;
    const attempt = () => ifFreeToRebuild(locks, log.saleId, () => this.#rebuild(log, why, draft));
    while (!this.#stopping && !(await this.#limit(attempt))) await delay(LOOK_AGAIN_MS);
  }

  async #rebuild({ saleId, generation, newest }: SaleLog, why: string, draft?: Draft): Promise<void> {
    if (this.#stopping) return;
    const { db, backend, events } = this.#stores;
    await this.#stores.claim?.();
    if ((await readSale(db, saleId))?.generation !== generation) return;
    const witness = {
      generation,
      newest,
      rejected: (rejection: Rejection) => events.rejected({ saleId, ...rejection }),
      ordersLost: (loss: Loss) => events.ordersLost({ saleId, ...loss }),
    };
    const report = await rebuildSale(db, backend, saleId, witness, draft && { draft });
    if (!report) return;
    // An in-process backend has held nothing at its start, and loses nothing afterwards.
    events.rebuilt({ saleId, why, again: !draft && generation > 0 && backend.durable, ...report });
  }

  async #letGo(saleId: string): Promise<void> {
    await this.#stores.locks.unlock(saleId).catch(() => {});
    this.#begun.delete(saleId);
    this.#hints.add(saleId);
  }
}
