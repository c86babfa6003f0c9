/**
 * Rebalances sales by timer: those that this sync works on, are open, have sold since their last look and have become
 * uneven. Runs beside the loop, as no order waits for it. Each look also finishes transfers that others have left
 * open. Only on several servers a transfer can be left open, so a single server is not asked about quiet sales.
 *
 * A round looks at a limited number of sales, so that the cost of rebalancing does not grow with the number of sales. Those that have
 * waited longest come first. A buyer who comes to an uneven sale before its turn waits for a refill.
 */
import type { Move } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { isUneven, planMoves } from '../engine/sale/transfer-plan.ts';
import { leftsOf, makeMoves } from '../sales/rebalance.ts';
import type { SaleLog } from './apply/sale-log.ts';
import type { HeldSales } from './held/held-sales.ts';
import type { SyncStores } from './held/sync-stores.ts';

/** How many sales a round looks at, at most. */
const SALES_OF_ROUND = 64;
/** How many of them it looks at because they have sold. On several servers the others are quiet sales, which may have a transfer left open. */
const SOLD_OF_ROUND = 48;

export class Rebalancer {
  readonly #stores: SyncStores;
  readonly #sales: Pick<HeldSales, 'logs'>;
  readonly #everyMs: number;
  /** The number of log entries of each sale at its last look. The sale that was looked at longest ago comes first. */
  readonly #looked = new Map<string, number>();
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

  /** One round. Never rejects. */
  async run(): Promise<void> {
    const logs = this.#salesOfRound();
    const sold = new Set(logs.filter((log) => this.#hasSold(log)));
    for (const log of logs) {
      this.#looked.delete(log.saleId);
      this.#looked.set(log.saleId, log.entries);
    }
    for (const log of await this.#openAmong(logs)) {
      if (this.#stopped) return;
      await this.#isolate(log, () => this.#lookAt(log, sold.has(log)));
    }
  }

  /** First the sales that have sold since their last look, then quiet ones; of each kind, those first that have waited longest. */
  #salesOfRound(): SaleLog[] {
    const held = new Map([...this.#sales.logs].map((log) => [log.saleId, log]));
    for (const saleId of this.#looked.keys()) if (!held.has(saleId)) this.#looked.delete(saleId);
    const unlooked = [...held.values()].filter(({ saleId }) => !this.#looked.has(saleId));
    const inTurn = [...unlooked, ...[...this.#looked.keys()].map((saleId) => held.get(saleId)!)];
    const sold = inTurn.filter((log) => this.#hasSold(log)).slice(0, SOLD_OF_ROUND);
    if (!this.#stores.backend.isSpread) return sold;
    const quiet = inTurn.filter((log) => !this.#hasSold(log));
    return [...sold, ...quiet].slice(0, SALES_OF_ROUND);
  }

  /** Whether it has sold since its last look. */
  #hasSold(log: SaleLog): boolean {
    return this.#looked.get(log.saleId) !== log.entries;
  }

  /** Those whose sale is open in the backend, in the generation of the log. */
  async #openAmong(logs: readonly SaleLog[]): Promise<readonly SaleLog[]> {
    if (logs.length === 0) return logs;
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

  async #lookAt({ saleId, generation, positions }: SaleLog, hasSold: boolean): Promise<void> {
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

  /** Never rejects. A sale that is being rebuilt gets even segments anyway; any other error concerns one sale. */
  async #isolate({ saleId }: SaleLog, work: () => Promise<void>): Promise<void> {
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
