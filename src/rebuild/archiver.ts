/**
 * Archives sales that have been over for long, so that what a shop once sold costs Redis nothing. A sale that has ended
 * and is still open is closed first.
 *
 *   over for ARCHIVE_AFTER_DAYS ──closed?──no──> closed by `stockade` ──next round──> archived (archive.ts)
 *
 * Each round works on a few sales, one after the other, beside the loop of sync. Several processes may do this at once. Only the
 * sales that have failed are kept in memory: they are left out until a round finds no others. So if a process dies, the next
 * round of any process continues its work.
 */
import type { Knex } from 'knex';
import type { Backend } from '../engine/contract.ts';
import { StaleGeneration, StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import { Rounds } from '../lib/rounds.ts';
import { texts } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { followMovements } from '../sales/movements.ts';
import { makeChange } from '../sales/sale-changes.ts';
import { archiveSale } from './archive.ts';

const ROUND_SALES = 10;
const ROUND_EVERY_MS = 60_000;

export interface ArchiverEvents {
  archived(info: { saleId: string }): void;
  /** A sale, or the whole round if no sale is named, has failed and is tried again. */
  failed(info: { saleId?: string; error: unknown }): void;
}

export interface ArchiverOptions {
  readonly db: Database;
  readonly backend: Backend;
  readonly locks: SaleLocks;
  readonly events: ArchiverEvents;
  /** How long a sale must have been over, in days; 0: none is archived. */
  readonly afterDays: number;
  /** Checks that the stores belong together. @throws ForeignStores */
  readonly claim?: () => Promise<void>;
  readonly everyMs?: number;
}

export class Archiver {
  readonly #options: ArchiverOptions;
  readonly #author: Author;
  readonly #rounds: Rounds;
  readonly #failed = new Set<string>();

  constructor(options: ArchiverOptions) {
    const { everyMs = ROUND_EVERY_MS, events } = options;
    this.#options = options;
    this.#author = { actor: 'stockade', reason: `over for ${options.afterDays} days` };
    this.#rounds = new Rounds({
      everyMs,
      beginsWithPause: true,
      round: (signal) => this.#round(signal),
      failed: (error) => events.failed({ error }),
    });
  }

  start(): void {
    if (this.#options.afterDays > 0) this.#rounds.start();
  }

  /** Ends after the sale under way. */
  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  async #round(signal: AbortSignal): Promise<false> {
    const { db, afterDays, claim } = this.#options;
    const over = await readOver(db, afterDays, [...this.#failed]);
    if (over.length === 0) this.#failed.clear();
    else await claim?.();
    for (const sale of over) {
      if (signal.aborted) break;
      await this.#closeOrArchive(sale).catch((error) => this.#setAside(sale.id, error));
    }
    return false;
  }

  async #closeOrArchive({ id, state }: OverSale): Promise<void> {
    const { db, backend, locks, events, afterDays } = this.#options;
    if (state !== 'closed') {
      // An operator may have given it another window since it was read, or another sale the id.
      await makeChange(db, id, { action: 'close' }, this.#author, {
        isWanted: (trx) => isOver(trx, id, afterDays),
      });
      await followMovements(db, backend, id);
      return;
    }
    await archiveSale({ db, backend, locks }, id, this.#author);
    events.archived({ saleId: id });
  }

  /** A sale that is being rebuilt, or whose logs are not drained, has not failed: it is only not ready. */
  #setAside(saleId: string, error: unknown): void {
    this.#failed.add(saleId);
    const isUnready =
      error instanceof StaleGeneration || (error instanceof StockadeError && error.code === 'unavailable');
    if (!isUnready) this.#options.events.failed({ saleId, error });
  }
}

interface OverSale {
  readonly id: string;
  readonly state: string;
}

/** SQL: whether a sale ended or was closed at least `?` days ago. */
const OVER = "least(ends_at, closed_at) < now() - ? * interval '1 day'";

/** Sales that have been over for at least this number of days, the longest over first. */
function readOver(db: Database, days: number, except: readonly string[]): Promise<OverSale[]> {
  return rows<OverSale>(
    db,
    `SELECT id, state FROM sales
     WHERE archived_at IS NULL AND ${OVER} AND id <> ALL (?::text[])
     ORDER BY least(ends_at, closed_at) LIMIT ?`,
    [days, texts(except), ROUND_SALES],
  );
}

async function isOver(trx: Knex.Transaction, saleId: string, days: number): Promise<boolean> {
  return (await rows(trx, `SELECT 1 FROM sales WHERE id = ? AND ${OVER}`, [saleId, days])).length > 0;
}
