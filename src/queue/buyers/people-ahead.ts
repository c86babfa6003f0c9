/** Counts those who are present before each rank, so that a place is told its number of people ahead without counting again. */
import { setImmediate as nextTurnOfLoop } from 'node:timers/promises';
import type { Line } from '../line.ts';
import type { PresentPlaces } from '../presence.ts';

/** Ranks that are counted in one turn of the event loop: some 2 ms. */
const STEP_RANKS = 65_536;

export class PeopleAhead {
  readonly #head: number;
  /** At index i: how many of the ranks from head + 1 to head + i are present. `undefined`: all of them. */
  readonly #sums: Uint32Array | undefined;

  private constructor(head: number, sums: Uint32Array | undefined) {
    this.#head = head;
    this.#sums = sums;
  }

  /** For a queue in which nobody is ever absent. */
  static everybody(head: number): PeopleAhead {
    return new PeopleAhead(head, undefined);
  }

  /** @param head no place of a rank up to this one waits @param last the last rank that was given */
  static async count(
    head: number,
    last: number,
    line: Pick<Line, 'numberAt'>,
    present: Pick<PresentPlaces, 'has'>,
  ): Promise<PeopleAhead> {
    const sums = new Uint32Array(Math.max(0, last - head) + 1);
    for (let i = 1; i < sums.length; i++) {
      sums[i] = sums[i - 1]! + (present.has(line.numberAt(head + i)) ? 1 : 0);
      if (i % STEP_RANKS === 0) await nextTurnOfLoop();
    }
    return new PeopleAhead(head, sums);
  }

  /** Those who were given a place since the count are taken for present. */
  of(rank: number): number {
    const before = Math.max(0, rank - this.#head - 1);
    if (!this.#sums) return before;
    const counted = Math.min(before, this.#sums.length - 1);
    return this.#sums[counted]! + before - counted;
  }
}
