/**
 * Scans all sales for the reconciler (reconciler.ts), beside the loop. It changes only what is known of the logs, and
 * returns the sales that need work: those to be taken over, rebuilt, given a state, or released.
 *
 * Most sales have not changed since the last scan. So one query first compares each sale as a whole with what this
 * sync knows (of many quiet sales, only a part: quiet-sales.ts). Only for the others are the log heads read. The loop
 * keeps reading meanwhile, so results are compared with what was known before the query.
 *
 * The number of closed sales only grows, and no buyer waits for them: each scan takes the next page of them. A
 * drained one costs no lock and no log: its row and its version are read, its cursors, and the digest of its segments.
 * Archived sales are among the closed ones: the backend must not hold them.
 */
import type { ExpectedSale, KnownEntry, LogPosition, LogRead, SaleVersion } from '../../engine/contract.ts';
import { readPositions } from '../../postgres/cursors.ts';
import { type ComparedSale, readClosedSales, SalesAtWork } from '../../sales/sales-at-work.ts';
import { checkHead } from '../apply/log-chain.ts';
import type { SaleLog } from '../apply/sale-log.ts';
import type { HeldSales } from '../held/held-sales.ts';
import type { SyncStores } from '../held/sync-stores.ts';
import { QuietSales } from './quiet-sales.ts';

/** Segments queried in one write: a millisecond of the backend's time, in which takes wait. */
const PAGE_SEGMENTS = 1_000;
/** Closed sales per scan. */
const CLOSED_PAGE_SALES = 500;
/** Of these, at most this many that are not known to be drained: each costs a lock and half a dozen round trips. */
const CLOSED_PAGE_UNFINISHED = 100;
/** And at most this many drained ones that the backend must still hold: all their segments are compared. */
const CLOSED_PAGE_DRAINED = 50;

/** A sale as it is in Postgres, and its record in the backend. */
export interface Seen {
  readonly sale: ComparedSale;
  readonly version: SaleVersion | undefined;
}

export interface ClosedSales {
  /** Not known to be drained, or different from when they were finished. */
  readonly needingWork: readonly Seen[];
  /** Drained sales that the backend must still hold. */
  readonly drained: readonly string[];
}

/** A sale that this sync works on, with what was known of its logs before the query. */
interface Known {
  readonly sale: ComparedSale;
  readonly log: SaleLog;
  readonly positions: readonly LogPosition[];
  readonly newest: readonly KnownEntry[];
}

export class LogScanner {
  readonly #stores: SyncStores;
  readonly #sales: HeldSales;
  readonly #atWork: SalesAtWork;
  readonly #quiet = new QuietSales();
  /** The last closed sale of the previous page. */
  #lastClosed = '';

  constructor(stores: SyncStores, sales: HeldSales) {
    this.#stores = stores;
    this.#sales = sales;
    this.#atWork = new SalesAtWork(stores.db);
  }

  /** The sales that need work, among those that are not closed and the closed ones that this sync works on. */
  async atWork(): Promise<Seen[]> {
    const held = [...this.#sales.logs].map((log) => log.saleId);
    const needingWork: Seen[] = [];
    const sales = await this.#atWork.read(held);
    const compared = this.#quiet.choose(sales, (sale) => this.#currentLog(sale));
    for (const page of this.#pagesOf(compared)) {
      const unclear = await this.#withoutMatching(page);
      needingWork.push(...(await this.#compareHeads(unclear)));
    }
    return needingWork;
  }

  hintsLost(): void {
    this.#quiet.forget();
  }

  /** Looks at the next closed sales. */
  async closed(): Promise<ClosedSales> {
    const page = await readClosedSales(this.#stores.db, this.#lastClosed, CLOSED_PAGE_SALES);
    const unfinished: Seen[] = [];
    const drained: Seen[] = [];
    let looked = 0;
    for (const seen of await this.#withVersions(page)) {
      if (unfinished.length === CLOSED_PAGE_UNFINISHED || drained.length === CLOSED_PAGE_DRAINED) break;
      const { id, isArchived } = seen.sale;
      // `atWork` covers the sales that this sync works on.
      if (!this.#sales.held(id)) {
        if (!this.#isDone(seen)) unfinished.push(seen);
        else if (!isArchived) drained.push(seen);
      }
      this.#lastClosed = id;
      looked++;
    }
    if (looked === page.length && page.length < CLOSED_PAGE_SALES) this.#lastClosed = '';
    return {
      needingWork: [...unfinished, ...(await this.#changed(drained))],
      drained: drained.map(({ sale }) => sale.id),
    };
  }

  /** The drained sales of which a segment has changed. All their orders are in Postgres, so each log ends at its cursor. */
  async #changed(drained: readonly Seen[]): Promise<readonly Seen[]> {
    if (drained.length === 0) return drained;
    const { db, backend } = this.#stores;
    const ids = drained.map(({ sale }) => sale.id);
    const cursors = await readPositions(db, ids);
    const positionsOf = (sale: ComparedSale) => cursors.get(sale.id) ?? [];
    const matches = await backend.sales.matches(drained.map(({ sale }) => expected(sale, positionsOf(sale))));
    const unclear = drained.filter((_, i) => !matches[i]);
    const reads = (
      await backend.log.readLog(
        unclear.flatMap(({ sale }) => positionsOf(sale)),
        0,
      )
    ).values();
    return unclear.filter(({ sale }) => {
      const ofSale = positionsOf(sale).map(() => reads.next().value!);
      return !ofSale.every((read) => endsAtCursor(read) && isAsWanted(sale, read.head!) && isAnnounced(read));
    });
  }

  #isDone(seen: Seen): boolean {
    if (seen.sale.isArchived) return seen.version === undefined;
    return this.#sales.isFinished(seen.sale.id) && isAsInPostgres(seen);
  }

  *#pagesOf(sales: readonly ComparedSale[]): Generator<ComparedSale[]> {
    let [page, segments]: [ComparedSale[], number] = [[], 0];
    for (const sale of sales) {
      page.push(sale);
      segments += this.#sales.held(sale.id)?.positions.length ?? 1;
      if (segments < PAGE_SEGMENTS) continue;
      yield page;
      [page, segments] = [[], 0];
    }
    if (page.length > 0) yield page;
  }

  async #withoutMatching(sales: readonly ComparedSale[]): Promise<ComparedSale[]> {
    const known = this.#knownOf(sales);
    const matches = await this.#stores.backend.sales.matches(
      known.map(({ sale, newest }) => expected(sale, newest)),
    );
    const matching = known.filter((_, i) => matches[i]);
    for (const { sale, log } of matching) this.#quiet.matched(sale, log);
    for (const each of matching) this.#growUnread(each);
    const atRest = new Set(matching.filter((each) => !this.#isToRelease(each)).map(({ sale }) => sale));
    return sales.filter((sale) => !atRest.has(sale));
  }

  async #compareHeads(sales: readonly ComparedSale[]): Promise<Seen[]> {
    const known = this.#knownOf(sales);
    const positions = known.flatMap((each) => each.positions);
    const [seen, reads] = await Promise.all([
      this.#withVersions(sales),
      this.#stores.backend.log.readLog(positions, 0),
    ]);
    const heads = reads.values();
    const sound = new Set<ComparedSale>();
    for (const each of known) {
      const ofSale = each.positions.map(() => heads.next().value!);
      if (!learn(each, ofSale)) continue;
      this.#growUnread(each);
      if (!this.#isToRelease(each) && !isUnannounced(each, ofSale)) sound.add(each.sale);
    }
    return seen.filter((each) => !sound.has(each.sale) || !isAsInPostgres(each));
  }

  /** The sales that this sync works on in the same generation as Postgres. */
  #knownOf(sales: readonly ComparedSale[]): Known[] {
    return sales.flatMap((sale) => {
      const log = this.#sales.held(sale.id);
      if (log?.generation !== sale.generation) return [];
      return { sale, log, positions: [...log.positions], newest: [...log.newest] };
    });
  }

  #currentLog({ id, generation }: ComparedSale): SaleLog | undefined {
    const log = this.#sales.held(id);
    return log?.generation === generation ? log : undefined;
  }

  /** Makes the loop read entries that a hint has not named, unless the sale was released meanwhile. */
  #growUnread({ sale, log }: Known): void {
    if (this.#sales.held(sale.id) === log) log.growUnread();
  }

  /** Whether the sale is closed and drained. If it was released meanwhile, the next scan sees its new state. */
  #isToRelease({ sale, log }: Known): boolean {
    return this.#sales.held(sale.id) === log && sale.state === 'closed' && log.backlog === 0;
  }

  async #withVersions(sales: readonly ComparedSale[]): Promise<Seen[]> {
    const versions = await this.#stores.backend.sales.versions(sales.map(({ id }) => id));
    return sales.map((sale, i) => ({ sale, version: versions[i] }));
  }
}

/** @returns whether the logs continue what was known, and the segments have the sale's state and rules */
function learn({ sale, log, newest }: Known, reads: readonly LogRead[]): boolean {
  if (!reads.every((read, segment) => checkHead(read, newest[segment]).ok)) return false;
  for (const [segment, read] of reads.entries()) log.saw(segment, read);
  return reads.every(({ head }) => isAsWanted(sale, head!));
}

function expected(
  { id: saleId, generation, state, rules }: ComparedSale,
  newest: ExpectedSale['newest'],
): ExpectedSale {
  return { saleId, generation, state, rules, newest };
}

function isAsInPostgres({ sale, version }: Seen): boolean {
  return version?.generation === sale.generation && isAsWanted(sale, version);
}

/** All orders of the sale are in Postgres, and the backend has lost that this was announced. */
function isUnannounced({ log }: Known, reads: readonly LogRead[]): boolean {
  return log.backlog === 0 && !reads.every(isAnnounced);
}

/**
 * A drained log has no further entries. If it has, this is another sale: the one that was drained was deleted, and its id was given
 * to a sale that was closed between two scans.
 */
function endsAtCursor(read: LogRead): boolean {
  return checkHead(read).ok && read.head?.seq === read.position.seq;
}

/** Whether the backend knows that the log is applied up to the position. */
export function isAnnounced({ position, head }: LogRead): boolean {
  return head !== undefined && head.committed >= position.seq;
}

/**
 * Whether a record or a segment has the sale's state and rules. A closed sale admits no purchases, so its rules don't
 * matter, unless they are missing: then version 0.1.0 has built the sale, and it lacks counters too (set-state.lua).
 */
export function isAsWanted(
  sale: ComparedSale,
  seen: Pick<SaleVersion, 'rules'> & { readonly state: string },
): boolean {
  return (
    seen.state === sale.state && (sale.state === 'closed' ? Boolean(seen.rules) : seen.rules === sale.rules)
  );
}
