/**
 * The sweep: a look at all sales, which makes up for what the loop (sync.ts) was not told. It finds logs that have grown
 * although no hint came, sales that the backend does not have or has in an older generation, states that the backend
 * has missed, and watermarks that it has not taken. It also counts the backlog.
 *
 * Closed sales only grow in number, and nobody waits for them: each sweep takes the next page of them. One that is
 * drained costs its part of two reads, of its row and of its pulse: no lock, no log. What the pulse can't show, such as
 * a segment that is gone by itself, is noticed by the next sync that starts. Measured with 5,000 closed sales: 2 ms a
 * sweep more than with none, where to read all their rows took 28 ms; each is looked at every 10 s. After a start, when
 * none is known to be drained yet, a sweep takes 65 ms, for 50 s.
 */
import type { Pulse } from '../engine/contract.ts';
import { monotonicMs } from '../engine/monotonic.ts';
import { followState } from './follow-state.ts';
import type { HeldSales } from './held-sales.ts';
import { checkHead } from './log-chain.ts';
import type { SaleLog } from './sale-log.ts';
import { readClosedSales, readSale, readSalesAtWork, type SaleHead } from './sale-rows.ts';
import type { SyncStores } from './sync-stores.ts';
import type { WatermarkTeller } from './watermark-teller.ts';

const SWEEP_MS = 1_000;
/** Closed sales that a sweep looks at. */
const CLOSED_PAGE_SALES = 500;
/** Of these, so many that are not known to be drained: such a look costs a lock and half a dozen round trips. */
const CLOSED_PAGE_UNFINISHED = 100;

export class Sweep {
  readonly #stores: SyncStores;
  readonly #teller: WatermarkTeller;
  readonly #sales: HeldSales;
  /** The logs that were worked on before the loop failed. */
  #lastSeen: SaleLog[] = [];
  #dueAtMs = 0;
  /** The closed sale that was looked at last. */
  #lastClosed = '';
  #swept: () => void = () => {};
  /** Resolves after the first sweep and its rebuilds: every sale that is not closed is in the backend then. */
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
    const held = [...this.#sales.logs].map((log) => log.saleId);
    let backlog = 0;
    for (const [sale, pulse] of await this.#withPulses(await readSalesAtWork(this.#stores.db, held))) {
      backlog += await this.#look(sale, pulse);
    }
    void this.#sales.rebuilt().then(this.#swept);
    backlog += await this.#lookAtClosed();
    // Only a whole sweep counts: one that failed is made up for at the next attempt.
    this.#dueAtMs = monotonicMs() + SWEEP_MS;
    this.#stores.events.backlog({ orders: backlog });
  }

  /** Postgres may be away: what the logs hold beyond the newest cursors that this sync knew is its backlog. */
  async reportBacklog(): Promise<void> {
    const held = [...this.#sales.logs];
    if (held.length > 0) this.#lastSeen = held;
    try {
      for (const log of this.#lastSeen) {
        for (const read of await this.#stores.backend.log.readLog(log.positions, 0)) {
          log.saw(read.position.segment, read);
        }
      }
      this.#stores.events.backlog({ orders: this.#lastSeen.reduce((sum, log) => sum + log.backlog, 0) });
    } catch {
      // The backend is away too: the last figure stands.
    }
  }

  /** The next page of closed sales, or its beginning, if many of them are not known to be drained. @returns as `#look` */
  async #lookAtClosed(): Promise<number> {
    const page = await readClosedSales(this.#stores.db, this.#lastClosed, CLOSED_PAGE_SALES);
    let [backlog, unfinished] = [0, 0];
    for (const [sale, pulse] of await this.#withPulses(page)) {
      // One that is held has been looked at already.
      if (!this.#sales.held(sale.id) && !this.#isAsFinished(sale, pulse)) {
        if (++unfinished > CLOSED_PAGE_UNFINISHED) return backlog;
        this.#sales.unfinish(sale.id);
        backlog += await this.#look(sale, pulse);
      }
      this.#lastClosed = sale.id;
    }
    if (page.length < CLOSED_PAGE_SALES) this.#lastClosed = '';
    return backlog;
  }

  #isAsFinished({ id, generation, state }: SaleHead, pulse: Pulse | undefined): boolean {
    return this.#sales.isFinished(id) && pulse?.generation === generation && pulse.state === state;
  }

  async #withPulses(sales: readonly SaleHead[]): Promise<[SaleHead, Pulse | undefined][]> {
    const pulses = await this.#stores.backend.sales.pulse(sales.map(({ id }) => id));
    return sales.map((sale, i) => [sale, pulses[i]]);
  }

  /** @returns the orders in the sale's logs that are not in Postgres yet, if this sync works on it */
  async #look(sale: SaleHead, pulse: Pulse | undefined): Promise<number> {
    return (await this.#sales.apart(sale.id, () => this.#mend(sale, pulse))) ?? 0;
  }

  async #mend({ id, generation, state }: SaleHead, pulse: Pulse | undefined): Promise<number> {
    const { db, backend } = this.#stores;
    const held = this.#sales.held(id);
    if (held && held.generation !== generation) await this.#sales.forget([id]);
    const log = await this.#sales.logOf(id);
    if (!log) return 0;
    if (pulse?.generation !== generation) {
      if (await this.#isBehind(id)) {
        this.#sales.rebuild(id, 'the backend does not hold the sale in its newest generation');
      }
      return 0;
    }
    for (const read of await backend.log.readLog(log.positions, 0)) {
      const { segment, seq } = read.position;
      const verdict = checkHead(read, log.newest[segment]);
      if (!verdict.ok) {
        await this.#sales.broken(read, verdict.problem);
        return 0;
      }
      if (read.head!.seq > seq) log.grow([segment]);
      log.saw(segment, read);
    }
    // Behind the check: segments that have to be built anew follow no state.
    if (pulse.state !== state) await followState(db, backend, id);
    else if (state === 'closed' && log.backlog === 0) await this.#sales.finish(id);
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
