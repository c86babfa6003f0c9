import type { KnownEntry, LogPosition, LogRead } from '../../engine/contract.ts';
import type { Cursor } from '../../postgres/cursors.ts';

/** Bound for each log. An entry is added whenever the log has grown since the last look at it, and removed when it is applied. */
const MAX_OLDER = 1_000;

/**
 * How far this sync has read and applied one sale's logs, and which of them may have grown. Read entries are applied
 * soon; if that fails, the sale is released, and its cursors are read again.
 *
 * A log can't lose entries that were seen in it, unless the backend has lost writes. So they are remembered, also by
 * the sale's next SaleLog: Postgres may be unreachable for long, and the cursors know nothing of entries written
 * meanwhile.
 *
 * A newer entry does not show that an older one is still there: the backend may have lost it, and have written others since. So older
 * entries are remembered as well, until they are applied.
 */
export class SaleLog {
  readonly saleId: string;
  readonly generation: number;
  /** Positions after the last entry that is in a batch. */
  readonly #cursors: LogPosition[];
  /** Sequence numbers of the newest applied entries, by segment. */
  readonly #appliedUpTo: number[];
  /** Applied orders, by segment. */
  readonly #applied: number[];
  /** The newest entries seen, applied or not. */
  readonly #newest: KnownEntry[];
  /** Entries that were the newest before, and are not applied, the oldest first. */
  readonly #older: KnownEntry[][];
  readonly #grown = new Set<number>();
  /** The sum for `entries`. It is kept because each sweep asks every sale for it. `undefined`: it must be added up again. */
  #entries: number | undefined;
  #backlog: number | undefined;

  /** @param before the SaleLog that this one replaces */
  constructor(saleId: string, cursors: readonly Cursor[], before?: SaleLog) {
    this.saleId = saleId;
    this.generation = cursors[0]?.generation ?? 0;
    this.#cursors = cursors.map(({ segment, generation, seq, tail }) => ({
      saleId,
      segment,
      generation,
      seq,
      tail,
    }));
    this.#appliedUpTo = cursors.map((cursor) => cursor.seq);
    this.#applied = cursors.map((cursor) => cursor.orders);
    const past = before?.generation === this.generation ? before : undefined;
    this.#newest = cursors.map((cursor, i) => newerOf(cursor, past?.newest[i]));
    this.#older = cursors.map((cursor, i) => unapplied(past?.older[i] ?? [], cursor));
  }

  get positions(): readonly LogPosition[] {
    return this.#cursors;
  }

  get hasGrown(): boolean {
    return this.#grown.size > 0;
  }

  /** By segment. */
  get newest(): readonly KnownEntry[] {
    return this.#newest;
  }

  /** By segment: entries that were the newest before, and are not applied. */
  get older(): readonly (readonly KnownEntry[])[] {
    return this.#older;
  }

  /** Entries seen in all logs, from the first one on. Any new entry changes it. */
  get entries(): number {
    this.#entries ??= this.#newest.reduce((sum, { seq }) => sum + seq, 0);
    return this.#entries;
  }

  /** Orders seen in the logs beyond the cursors. */
  get backlog(): number {
    const unapplied = (sum: number, { orders }: KnownEntry, i: number) =>
      sum + Math.max(0, orders - this.#applied[i]!);
    this.#backlog ??= this.#newest.reduce(unapplied, 0);
    return this.#backlog;
  }

  grow(segments: Iterable<number>): void {
    for (const segment of segments) if (segment < this.#cursors.length) this.#grown.add(segment);
  }

  /** Marks all logs with unread entries as grown. */
  growUnread(): void {
    for (const [segment, { seq }] of this.#newest.entries()) {
      if (seq > this.#cursors[segment]!.seq) this.#grown.add(segment);
    }
  }

  /**
   * The positions of logs that have grown, at most `most`, the longest-waiting first. They count as read from now on,
   * so that later hints are not missed.
   */
  takeGrown(most: number): LogPosition[] {
    const segments = [...this.#grown].slice(0, most);
    for (const segment of segments) this.#grown.delete(segment);
    return segments.map((segment) => this.#cursors[segment]!);
  }

  saw(segment: number, { head, entries }: LogRead): void {
    const last = entries.at(-1);
    const read = last && { seq: last.seq, tail: last.tail, orders: last.ordersSoFar };
    const before = this.#newest[segment]!;
    const newest = newerOf(newerOf(before, head), read);
    this.#newest[segment] = newest;
    const older = this.#older[segment]!;
    if (newest !== before && before.seq > this.#appliedUpTo[segment]!) older.push(before);
    if (older.length > MAX_OLDER) older.shift();
    this.#entries = undefined;
    this.#backlog = undefined;
  }

  /** The entries up to here are in a batch. The log no longer counts as grown if nothing is known after them. */
  reading(to: LogPosition): void {
    this.#cursors[to.segment] = to;
    if (this.#newest[to.segment]!.seq <= to.seq) this.#grown.delete(to.segment);
  }

  /** A batch is in Postgres. The sale may have been released meanwhile, and its cursors read before the commit. */
  applied(to: LogPosition, orders: number): void {
    if (to.generation !== this.generation) return;
    if (this.#cursors[to.segment]!.seq < to.seq) this.#cursors[to.segment] = to;
    this.#appliedUpTo[to.segment] = Math.max(this.#appliedUpTo[to.segment]!, to.seq);
    this.#older[to.segment] = unapplied(this.#older[to.segment]!, to);
    this.#applied[to.segment] = Math.max(this.#applied[to.segment]!, orders);
    this.#backlog = undefined;
  }
}

function unapplied(entries: readonly KnownEntry[], applied: { readonly seq: number }): KnownEntry[] {
  return entries.filter(({ seq }) => seq > applied.seq);
}

function newerOf(known: KnownEntry, other: KnownEntry | undefined): KnownEntry {
  return other && other.seq > known.seq ? other : known;
}
