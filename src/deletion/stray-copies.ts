/**
 * Removes deleted sales from a backend that has them again, because it was restored from an older copy. Buyers may have
 * bought there. Such an order has no sale any more, so it is lost, and counted as such.
 *
 * Each call looks at the next page of deleted sales. A sale that was made again is not among them: it is rebuilt, and
 * what the backend holds of the deleted one is not salvaged (rebuild/rebuild.ts).
 */
import type { Backend, LogPosition } from '../engine/contract.ts';
import { BackendCorrupt, isOneSalesFault, StaleGeneration } from '../engine/errors.ts';
import { takenAtMs } from '../engine/order-id.ts';
import type { Database } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import type { Loss } from '../rebuild/losses.ts';
import { ifFreeToRebuild } from '../rebuild/rebuild-lock.ts';
import { type GoneSale, readGoneSales } from '../sales/deleted-sales.ts';
import { readSale } from '../sales/sale-rows.ts';
import { after } from '../sync/apply/log-chain.ts';

const PAGE_SALES = 500;
const READ_ENTRIES = 500;
/** An order's id has the second in which it was taken. */
const SECOND_MS = 1_000;

export interface StrayCopyParts {
  readonly db: Database;
  readonly backend: Backend;
  readonly locks: SaleLocks;
  readonly events: {
    ordersLost(info: { saleId: string } & Loss): void;
    saleFailed(info: { saleId: string; error: unknown }): void;
  };
  claim?(): Promise<void>;
}

export class StrayCopies {
  readonly #parts: StrayCopyParts;
  /** The last sale of the previous page. */
  #last = '';
  /** By sale: the failure that was reported last. */
  readonly #reported = new Map<string, string>();

  constructor(parts: StrayCopyParts) {
    this.#parts = parts;
  }

  /** A copy that can't be read or removed does not hold up the others. It is reported once, and tried again each time. */
  async removeNext(): Promise<void> {
    const { db, backend, locks } = this.#parts;
    const page = await readGoneSales(db, this.#last, PAGE_SALES);
    this.#last = page.length < PAGE_SALES ? '' : page.at(-1)!.saleId;
    if (page.length === 0) return;
    const versions = await backend.sales.versions(page.map(({ saleId }) => saleId));
    for (const sale of page.filter((_, i) => versions[i])) {
      await ifFreeToRebuild(locks, sale.saleId, () => this.#remove(sale)).catch((error) =>
        this.#failed(sale.saleId, error),
      );
    }
  }

  #failed(saleId: string, error: unknown): void {
    // A segment sold in another generation than the record names, and is frozen only now: the next round removes it.
    if (error instanceof StaleGeneration) return;
    if (!isOneSalesFault(error)) throw error;
    const what = String(error);
    if (this.#reported.get(saleId) === what) return;
    this.#reported.set(saleId, what);
    this.#parts.events.saleFailed({ saleId, error });
  }

  async #remove({ saleId, generation, begunAt }: GoneSale): Promise<void> {
    const { db, backend, events, claim } = this.#parts;
    await claim?.();
    const record = await backend.sales.read(saleId);
    // It may have been made again since the page was read.
    if (!record || (await readSale(db, saleId))) return;
    const { segments } = record.sale;
    await backend.sales.freeze(saleId, segments, record.generation);
    const losses: Loss[] = [];
    for (let segment = 0; segment < segments; segment++) {
      const orders = await this.#ordersSince(begunAt.getTime(), {
        ...{ saleId, segment, generation: record.generation },
        ...{ seq: 0, tail: '' },
      });
      if (orders > 0) losses.push({ segment, orders });
    }
    await backend.sales.archive({ saleId, generation });
    this.#reported.delete(saleId);
    for (const loss of losses) events.ordersLost({ saleId, ...loss });
  }

  /** Orders in a frozen log that were taken after the sale was deleted. @throws BackendCorrupt if the log can't be read */
  async #ordersSince(sinceMs: number, position: LogPosition): Promise<number> {
    let orders = 0;
    for (let at = position; ; ) {
      const [read] = await this.#parts.backend.log.readLog([at], READ_ENTRIES);
      if (read?.fault !== undefined)
        throw new BackendCorrupt(`the log of segment ${position.segment} can't be read: ${read.fault}`);
      const last = read?.entries.at(-1);
      if (!last) return orders;
      const taken = read!.entries.flatMap((entry) => entry.orders);
      orders += taken.filter(({ orderId }) => takenAtMs(orderId) + SECOND_MS > sinceMs).length;
      at = after(at, last);
    }
  }
}
