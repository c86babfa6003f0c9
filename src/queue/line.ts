/** The line of a queue: its places in the order in which they are served. */
import type { Database } from '../postgres/database.ts';
import { rows } from '../postgres/database.ts';
import type { Place } from './place.ts';
import { readWaiting } from './places.ts';

/** A place's rank counts from 1: how many places come before it, and itself. */
export interface Line {
  rankOf(number: number): number;
  /** The next places that wait, from a rank on, in the order of their ranks. */
  waiting(db: Database, afterRank: number, most: number): Promise<Place[]>;
  /** The rank of the place that has `ahead` waiting places before it; `undefined`: fewer wait. */
  rankBehind(db: Database, ahead: number): Promise<number | undefined>;
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

  waiting(db: Database, afterRank: number, most: number): Promise<Place[]> {
    return readWaiting(db, this.#saleId, afterRank, most);
  }

  async rankBehind(db: Database, ahead: number): Promise<number | undefined> {
    const [row] = await rows<{ number: string }>(
      db,
      "SELECT number::text FROM places WHERE sale_id = ? AND state = 'waiting' ORDER BY number OFFSET ? LIMIT 1",
      [this.#saleId, ahead],
    );
    return row && Number(row.number);
  }
}
