/**
 * The sweep: a look at all sales, which makes up for what the loop (sync.ts) was not told. It finds logs that have grown
 * although no hint came, sales that the backend does not have or has in an older generation, states that the backend
 * has missed, and watermarks that it has not taken. It also counts the backlog.
 */
import type { Pulse } from '../engine/contract.ts';
import { monotonicMs } from '../engine/monotonic.ts';
import { followState } from './follow-state.ts';
import type { HeldSales, SyncStores } from './held-sales.ts';
import { checkHead } from './log-chain.ts';
import type { SaleLog } from './sale-log.ts';
import { readSale, readSales, type SaleRow } from './sale-rows.ts';
import type { WatermarkTeller } from './watermark-teller.ts';

const SWEEP_MS = 1_000;

export class Sweep {
  readonly #stores: SyncStores;
  readonly #teller: WatermarkTeller;
  readonly #sales: HeldSales;
  /** The logs that were worked on before the loop failed. */
  #lastSeen: SaleLog[] = [];
  #dueAtMs = 0;
  #swept: () => void = () => {};
  /** Resolves after the first sweep: every sale is in the backend then. */
  readonly ready = new Promise<void>((resolve) => {
    this.#swept = resolve;
  });

  constructor(stores: SyncStores, teller: WatermarkTeller, sales: HeldSales) {
    this.#stores = stores;
    this.#teller = teller;
    this.#sales = sales;
  }

  /** Milliseconds until the next sweep is due; not above 0 if it is. */
  get dueInMs(): number {
    return this.#dueAtMs - monotonicMs();
  }

  async run(): Promise<void> {
    await this.#teller.tellAgain();
    const sales = (await readSales(this.#stores.db)).filter((row) => !this.#sales.isFinished(row.sale.id));
    const pulses = await this.#stores.backend.sales.pulse(sales.map((row) => row.sale.id));
    let backlog = 0;
    for (const [i, row] of sales.entries()) {
      // Closed sales come last, and nobody waits for them.
      if (row.state === 'closed') this.#swept();
      backlog += (await this.#sales.apart(row.sale.id, () => this.#look(row, pulses[i]))) ?? 0;
    }
    // Only a whole sweep counts: one that failed is made up for at the next attempt.
    this.#dueAtMs = monotonicMs() + SWEEP_MS;
    this.#stores.events.backlog({ orders: backlog });
    this.#swept();
  }

  /** Postgres may be away: what the logs hold beyond the newest cursors that this sync knew is its backlog. */
  async reportBacklog(): Promise<void> {
    const held = [...this.#sales.logs];
    if (held.length > 0) this.#lastSeen = held;
    try {
      for (const log of this.#lastSeen) {
        for (const read of await this.#stores.backend.log.readLog(log.positions, 0)) {
          if (read.head) log.sawHead(read.position.segment, read.head);
        }
      }
      this.#stores.events.backlog({ orders: this.#lastSeen.reduce((sum, log) => sum + log.backlog, 0) });
    } catch {
      // The backend is away too: the last figure stands.
    }
  }

  /** @returns the orders in the sale's logs that are not in Postgres yet */
  async #look(row: SaleRow, pulse: Pulse | undefined): Promise<number> {
    const { id } = row.sale;
    const { db, backend } = this.#stores;
    const held = this.#sales.held(id);
    if (held && held.generation !== row.generation) await this.#sales.forget([id]);
    const log = await this.#sales.logOf(id);
    if (!log) return 0;
    if (pulse?.generation !== row.generation) {
      if (await this.#isBehind(id)) {
        await this.#sales.rebuild(id, 'the backend does not hold the sale in its newest generation');
      }
      return 0;
    }
    if (pulse.state !== row.state) await followState(db, backend, id);
    for (const read of await backend.log.readLog(log.positions, 0)) {
      const verdict = checkHead(read);
      if (!verdict.ok) await this.#sales.broken(read, verdict.problem);
      else if (read.head!.seq > read.position.seq) log.grow([read.position.segment]);
      if (read.head) log.sawHead(read.position.segment, read.head);
    }
    if (row.state === 'closed' && log.backlog === 0) await this.#sales.finish(id);
    return log.backlog;
  }

  /** Asked again under the lock: another may have built the sale since the sweep began. */
  async #isBehind(saleId: string): Promise<boolean> {
    const [row, [pulse]] = await Promise.all([
      readSale(this.#stores.db, saleId),
      this.#stores.backend.sales.pulse([saleId]),
    ]);
    return row !== undefined && pulse?.generation !== row.generation;
  }
}
