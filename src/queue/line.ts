/**
 * The line of a queue: its places in the order in which they are served. A place's rank counts from 1. With `fifo` the rank is the
 * number. With `draw` the places that were given before the window opened have drawn ranks, and all later ones stand behind them.
 */
import { MAX_PER_BUYER_LIMIT } from '../engine/limits.ts';
import { type Database, rows } from '../postgres/database.ts';
import type { NumbersByRank, RanksByNumber } from './draw/drawn-order.ts';
import type { Place } from './place.ts';
import { readPlaces, readWaiting, waitingAmong, waitingBetween } from './places.ts';

export interface Line {
  rankOf(number: number): number;
  numberAt(rank: number): number;
  /**
   * The next places that wait, behind a rank, in the order of their ranks.
   * @param mostUnits only places that want no more than these
   */
  waiting(db: Database, afterRank: number, most: number, mostUnits?: number): Promise<Place[]>;
  /** The rank of the place that has `ahead` waiting places before it, behind `afterRank`; `undefined`: fewer wait. */
  rankBehind(db: Database, afterRank: number, ahead: number): Promise<number | undefined>;
}

/** Places are served in the order in which they were given. */
export class FifoLine implements Line {
  readonly #saleId: string;

  constructor(saleId: string) {
    this.#saleId = saleId;
  }

  rankOf(number: number): number {
    return number;
  }

  numberAt(rank: number): number {
    return rank;
  }

  waiting(db: Database, afterRank: number, most: number, mostUnits?: number): Promise<Place[]> {
    return readWaiting(db, this.#saleId, afterRank, most, mostUnits);
  }

  async rankBehind(db: Database, afterRank: number, ahead: number): Promise<number | undefined> {
    const [row] = await rows<{ number: string }>(
      db,
      `SELECT p.number::text FROM places p WHERE p.sale_id = ? AND p.state = 'waiting' AND p.number > ?
       ORDER BY p.number OFFSET ? LIMIT 1`,
      [this.#saleId, afterRank, ahead],
    );
    return row && Number(row.number);
  }
}

/** Ranks that are looked at together: places that have left are between those that wait. */
const RANKS_AT_ONCE = 1_024;
/** To look up one place costs as much as to read so many in the order of their numbers. */
const READ_PER_LOOK_UP = 20;
/** Places that are read together, in the order of their numbers: some ten milliseconds. */
const NUMBERS_AT_ONCE = 65_536;

/** Places are served in the drawn order. */
export class DrawnLine implements Line {
  readonly #saleId: string;
  readonly #numbers: NumbersByRank;
  readonly #ranks: RanksByNumber;
  readonly #behind: FifoLine;

  constructor(saleId: string, drawn: NumbersByRank) {
    this.#saleId = saleId;
    this.#numbers = drawn;
    this.#ranks = drawn.ranksByNumber();
    this.#behind = new FifoLine(saleId);
  }

  get #entries(): number {
    return this.#numbers.array.length;
  }

  rankOf(number: number): number {
    return number <= this.#entries ? this.#ranks.rankOf(number) : number;
  }

  numberAt(rank: number): number {
    return rank <= this.#entries ? this.#numbers.numberAt(rank) : rank;
  }

  async waiting(
    db: Database,
    afterRank: number,
    most: number,
    mostUnits = MAX_PER_BUYER_LIMIT,
  ): Promise<Place[]> {
    const found: Place[] = [];
    let after = afterRank;
    for (; after < this.#entries && found.length < most; after += RANKS_AT_ONCE) {
      const drawn = await readPlaces(db, this.#saleId, this.#numbersBehind(after));
      found.push(
        ...this.#inOrder(drawn.filter(({ state, quantity }) => state === 'waiting' && quantity <= mostUnits)),
      );
    }
    if (found.length < most)
      found.push(
        ...(await this.#behind.waiting(db, Math.max(after, this.#entries), most - found.length, mostUnits)),
      );
    return found.slice(0, most);
  }

  async rankBehind(db: Database, afterRank: number, ahead: number): Promise<number | undefined> {
    const found =
      ahead * READ_PER_LOOK_UP > this.#entries
        ? await this.#read(db, afterRank, ahead)
        : await this.#lookUp(db, afterRank, ahead);
    return found.rank ?? this.#behind.rankBehind(db, Math.max(afterRank, this.#entries), found.left);
  }

  /** Looks the drawn places up, rank by rank. @returns the rank, or how many are `left` to find behind the drawn places */
  async #lookUp(db: Database, afterRank: number, ahead: number): Promise<{ rank?: number; left: number }> {
    let left = ahead;
    for (let after = afterRank; after < this.#entries; after += RANKS_AT_ONCE) {
      const waiting = await waitingAmong(db, this.#saleId, this.#numbersBehind(after));
      if (waiting.size > left) {
        const ranks = [...waiting].map((number) => this.rankOf(number)).sort((a, b) => a - b);
        return { rank: ranks[left]!, left: 0 };
      }
      left -= waiting.size;
    }
    return { left };
  }

  /** As `#lookUp`, but reads all drawn places that wait. */
  async #read(db: Database, afterRank: number, ahead: number): Promise<{ rank?: number; left: number }> {
    if (afterRank >= this.#entries) return { left: ahead };
    const waits = new Uint8Array(this.#entries + 1);
    for (let after = 0; after < this.#entries; after += NUMBERS_AT_ONCE) {
      const last = Math.min(after + NUMBERS_AT_ONCE, this.#entries);
      for (const number of await waitingBetween(db, this.#saleId, after, last))
        waits[this.rankOf(number)] = 1;
    }
    let left = ahead;
    for (let rank = afterRank + 1; rank <= this.#entries; rank++)
      if (waits[rank] === 1 && left-- === 0) return { rank, left: 0 };
    return { left };
  }

  #numbersBehind(rank: number): number[] {
    const count = Math.min(RANKS_AT_ONCE, this.#entries - rank);
    return Array.from({ length: count }, (_, i) => this.#numbers.numberAt(rank + 1 + i));
  }

  #inOrder(places: readonly Place[]): Place[] {
    return places.toSorted((a, b) => this.rankOf(a.number) - this.rankOf(b.number));
  }
}
