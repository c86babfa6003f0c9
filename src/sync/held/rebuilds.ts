/**
 * Rebuilds sales beside the loop, so that a long rebuild (many buyers to load, a locked row) does not delay the
 * orders of other sales.
 *
 *   queued ──a slot is free──> under way ──> released and hinted: the loop takes the sale with new cursors
 *      └──sync stops, or another process has rebuilt it──> released
 *
 * From beginning to end the sale is out of the loop and its lock is held. So none of its orders are read, applied or
 * announced here meanwhile, and no other sync starts the same rebuild. This only saves work: rebuild.ts keeps the
 * data right even without it.
 *
 * Another process may rebuild the sale while this rebuild waits for its turn. Buyers would then wait a second time for nothing.
 * So in its turn the rebuild looks again whether there is still something to do.
 *
 * A failed rebuild concerns only its sale and is tried again later. If Postgres or the backend can't be reached, the
 * loop notices that by itself.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Backend, Rejection } from '../../engine/contract.ts';
import { StaleGeneration } from '../../engine/errors.ts';
import type { Loss } from '../../rebuild/losses.ts';
import { type RebuildOptions, rebuildSale } from '../../rebuild/rebuild.ts';
import { ifFreeToRebuild } from '../../rebuild/rebuild-lock.ts';
import { readSale } from '../../sales/sale-rows.ts';
import type { SaleLog } from '../apply/sale-log.ts';
import type { Hints } from './hints.ts';
import type { SyncStores } from './sync-stores.ts';

/**
 * Slots for rebuilds. If one rebuild hangs, others can use the second slot; and two rebuilds leave connections of the
 * Postgres pool to the loop. PGlite has only one session: there a rebuild never waits for another session, but the
 * loop waits for each statement of the rebuild.
 */
const PARALLEL_REBUILDS = 2;
/** Pause while another process rebuilds the sale without its lock: an operator (recovery.ts). */
const LOOK_AGAIN_MS = 50;

export interface RebuildCause {
  /** An operator asked for the rebuild: the sale is sound and sells until then. */
  readonly asked?: Pick<RebuildOptions, 'draft'>;
  /** The backend's record does not name the generation of the log yet: another process may be about to publish it. */
  readonly isUnpublished?: boolean;
}

export class Rebuilds {
  readonly #stores: SyncStores;
  readonly #hints: Hints;
  readonly #setAside: (saleId: string, error: unknown) => void;
  readonly #limit = pLimit(PARALLEL_REBUILDS);
  /** Under way or queued. */
  readonly #begun = new Map<string, Promise<void>>();
  #stopping = false;

  /** @param setAside called for sales whose rebuild failed */
  constructor(stores: SyncStores, hints: Hints, setAside: (saleId: string, error: unknown) => void) {
    this.#stores = stores;
    this.#hints = hints;
    this.#setAside = setAside;
  }

  /** Rebuilds under way or queued. */
  get count(): number {
    return this.#begun.size;
  }

  has(saleId: string): boolean {
    return this.#begun.has(saleId);
  }

  /** Starts a rebuild. The caller holds the sale's lock, which is released at the end. */
  begin(log: SaleLog, why: string, cause: RebuildCause = {}): void {
    const { saleId } = log;
    const ended = this.#inTurn(log, why, cause)
      .catch((error) => {
        // StaleGeneration: another process was faster.
        if (!(error instanceof StaleGeneration)) this.#setAside(saleId, error);
      })
      .finally(() => this.#letGo(saleId));
    this.#begun.set(saleId, ended);
  }

  /** Resolves when all rebuilds begun so far have ended, successfully or not. */
  async ended(): Promise<void> {
    await Promise.all(this.#begun.values());
  }

  /** Resolves when the rebuilds under way have ended. Queued ones are left to the next sync. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.ended();
  }

  /** Waits for a slot, and gives it up while another process rebuilds the sale. */
  async #inTurn(log: SaleLog, why: string, cause: RebuildCause): Promise<void> {
    const { locks } = this.#stores;
    const attempt = () => ifFreeToRebuild(locks, log.saleId, () => this.#rebuild(log, why, cause));
    while (!this.#stopping && !(await this.#limit(attempt))) await delay(LOOK_AGAIN_MS);
  }

  async #rebuild(log: SaleLog, why: string, { asked, isUnpublished = false }: RebuildCause): Promise<void> {
    if (this.#stopping) return;
    const { db, backend, events } = this.#stores;
    await this.#stores.claim?.();
    const { saleId, generation, newest, older } = log;
    const row = await readSale(db, saleId);
    // An archived sale has no cursors, so nothing of its log is known.
    const isUnseen = row?.archivedAt !== undefined && generation === 0;
    if (!isUnseen && row?.generation !== generation) return;
    if (isUnpublished && (await publishedGeneration(backend, saleId)) === generation) return;
    const witness = {
      ...(isUnseen ? {} : { generation }),
      newest,
      older,
      rejected: (rejection: Rejection) => events.rejected({ saleId, ...rejection }),
      ordersLost: (loss: Loss) => events.ordersLost({ saleId, ...loss }),
    };
    const report = await rebuildSale(db, backend, saleId, witness, asked);
    if (!report) return;
    // An in-process backend is empty at its start, and loses nothing afterwards.
    events.rebuilt({ saleId, why, again: !asked && generation > 0 && backend.durable, ...report });
  }

  async #letGo(saleId: string): Promise<void> {
    await this.#stores.locks.unlock(saleId).catch(() => {});
    this.#begun.delete(saleId);
    this.#hints.add(saleId);
  }
}

/** The generation that the backend's record of the sale names; `undefined` if there is no record. */
export async function publishedGeneration(backend: Backend, saleId: string): Promise<number | undefined> {
  const [version] = await backend.sales.versions([saleId]);
  return version?.generation;
}
