/**
 * Rebalances sales by timer: those that this sync works on, are open, have sold since the last round and have become
 * uneven. Runs beside the loop, as no order waits for it. Each round also finishes transfers that others have left
 * open.
 */
import type { Move } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { isUneven, planMoves } from '../engine/sale/transfer-plan.ts';
import { leftsOf, makeMoves } from '../sales/rebalance.ts';
import type { SaleLog } from './apply/sale-log.ts';
import type { HeldSales } from './held-sales.ts';
import type { SyncStores } from './sync-stores.ts';

export class Rebalancer {
  readonly #stores: SyncStores;
  readonly #sales: Pick<HeldSales, 'logs'>;
  readonly #everyMs: number;
  /** The number of log entries of each sale in the last round. */
  #seen = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #stopped = false;

  /** @param everyMs pause between two rounds; 0: never */
  constructor(stores: SyncStores, sales: Pick<HeldSales, 'logs'>, everyMs: number) {
    this.#stores = stores;
    this.#sales = sales;
    this.#everyMs = everyMs;
  }

  start(): void {
    if (this.#everyMs > 0) this.#schedule();
  }

  /** Ends after the round under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const logs = [...this.#sales.logs];
    const before = this.#seen;
    this.#seen = new Map(logs.map((log) => [log.saleId, entriesOf(log)]));
    const open = await this.#open(logs);
    for (const log of open) {
      if (this.#stopped) return;
      const hasSold = before.get(log.saleId) !== entriesOf(log);
      await this.#apart(log, () => this.#look(log, hasSold));
    }
  }

  async #open(logs: readonly SaleLog[]): Promise<SaleLog[]> {
    try {
      const versions = await this.#stores.backend.sales.versions(logs.map((log) => log.saleId));
      return logs.filter((log, i) => {
        const version = versions[i];
        return version?.state === 'open' && version.generation === log.generation;
      });
    } catch {
      // The backend can't be reached: the loop reports that.
      return [];
    }
  }

  async #look({ saleId, generation, positions }: SaleLog, hasSold: boolean): Promise<void> {
    const { backend } = this.#stores;
    const sale = { saleId, generation };
    this.#tell(saleId, 'unfinished', await backend.transfers.finish(sale, positions.length));
    if (!hasSold) return;
    const lefts = await leftsOf(backend, sale, positions.length);
    if (isUneven(lefts)) this.#tell(saleId, 'uneven', await makeMoves(backend, sale, planMoves(lefts)));
  }

  #tell(saleId: string, why: 'uneven' | 'unfinished', moves: readonly Move[]): void {
    const units = moves.reduce((sum, move) => sum + move.units, 0);
    if (moves.length > 0) this.#stores.events.transferred({ saleId, why, moves: moves.length, units });
  }

  /** A sale that is being rebuilt gets even segments anyway. Any other error concerns one sale. */
  async #apart({ saleId }: SaleLog, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof StaleGeneration)) this.#stores.events.saleFailed({ saleId, error });
    }
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.#round = this.run().then(() => {
        if (!this.#stopped) this.#schedule();
      });
    }, this.#everyMs);
    this.#timer.unref();
  }
}

function entriesOf({ newest }: SaleLog): number {
  return newest.reduce((sum, { seq }) => sum + seq, 0);
}
