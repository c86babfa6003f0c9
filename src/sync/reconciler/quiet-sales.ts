/**
 * Which sales a scan of the reconciler (log-scanner.ts) compares with the backend. A sale is quiet if its logs, state and rules
 * have not changed during the last scans. If there are many quiet sales, each scan compares only a part of them, so that an idle
 * shop with many sales costs little. A fault of a quiet sale is then found some seconds later. While hints may have been lost, no
 * sale is quiet.
 *
 *   busy ──the same at QUIET_SCANS scans in a row──> quiet ──any change, or the messages were interrupted──> busy
 */
import type { ComparedSale } from '../../sales/sales-at-work.ts';
import type { SaleLog } from '../apply/sale-log.ts';

/** Scans, of which there is one a second. */
const QUIET_SCANS = 10;
/** Each quiet sale is compared once in this many scans. */
const ROUND_SCANS = 4;
/** Up to this many quiet sales are all compared by each scan. */
const ALL_AT_ONCE_SALES = 250;

/** A sale as it was at the last scan that compared it. */
interface Rest {
  readonly state: ComparedSale['state'];
  readonly rules: ComparedSale['rules'];
  readonly entries: number;
  /** How many scans in a row have found it like this. */
  readonly scans: number;
  /** The scans that compare it when it is quiet: those whose number has this remainder. */
  readonly turn: number;
}

export class QuietSales {
  /** A sale that is taken over again has a new log, so it is busy. */
  #rests = new WeakMap<SaleLog, Rest>();
  #scan = 0;
  #nextTurn = 0;

  /**
   * Begins a scan.
   * @param logOf the log of a sale in the generation that Postgres has; `undefined` if there is none
   * @returns the sales to be compared
   */
  choose(sales: readonly ComparedSale[], logOf: (sale: ComparedSale) => SaleLog | undefined): ComparedSale[] {
    this.#scan++;
    const quiet = new Map<ComparedSale, Rest>();
    for (const sale of sales) {
      const rest = this.#quietRest(sale, logOf(sale));
      if (rest) quiet.set(sale, rest);
    }
    if (quiet.size <= ALL_AT_ONCE_SALES) return [...sales];
    return sales.filter((sale) => (quiet.get(sale)?.turn ?? this.#turn) === this.#turn);
  }

  /** The backend has the sale as Postgres and the log say. */
  matched(sale: ComparedSale, log: SaleLog): void {
    const { state, rules } = sale;
    const before = this.#rests.get(log);
    const scans = before && isAsBefore(before, sale, log) ? before.scans + 1 : 0;
    const turn = before?.turn ?? this.#nextTurn++ % ROUND_SCANS;
    this.#rests.set(log, { state, rules, entries: log.entries, turn, scans });
  }

  /** All sales are busy again. */
  forget(): void {
    this.#rests = new WeakMap();
  }

  get #turn(): number {
    return this.#scan % ROUND_SCANS;
  }

  #quietRest(sale: ComparedSale, log: SaleLog | undefined): Rest | undefined {
    const rest = log && this.#rests.get(log);
    if (!rest || rest.scans < QUIET_SCANS || log.backlog > 0) return undefined;
    return isAsBefore(rest, sale, log) ? rest : undefined;
  }
}

function isAsBefore({ state, rules, entries }: Rest, sale: ComparedSale, log: SaleLog): boolean {
  return state === sale.state && rules === sale.rules && entries === log.entries;
}
