/**
 * The drawn order: which number has which rank. It is Fisher and Yates' shuffle of the numbers 1 to n, from the last rank to the
 * first. Seed, entries' hash and n alone decide it, so each process calculates the same order.
 *
 * An array has 4 bytes for each place, in shared memory. Each thread that needs the order draws it for itself.
 */
import { below, RandomNumbers } from './random-numbers.ts';

/** The bound keeps a made-up file from asking for any amount of memory: with it, a draw needs 40 MB and some seconds. */
export const MAX_ENTRIES = 10_000_000;
/** Some milliseconds of work. */
const PLACES_PER_STEP = 10_000;

export interface Drawing {
  readonly seed: Uint8Array;
  /** 64 hexadecimal characters. */
  readonly entriesHash: string;
  /** The greatest number, from 0 to MAX_ENTRIES. */
  readonly entries: number;
}

/** Which number stands at a rank: for the head, which makes offers rank by rank. */
export class NumbersByRank {
  readonly array: Uint32Array;

  /** @param array the number of rank 1 at index 0, and so on */
  constructor(array: Uint32Array) {
    this.array = array;
  }

  /** @param rank from 1. @throws RangeError */
  numberAt(rank: number): number {
    return valueAt(this.array, rank, 'rank');
  }

  ranksByNumber(): RanksByNumber {
    const ranks = sharedArray(this.array.length);
    for (let i = 0; i < ranks.length; i++) ranks[this.array[i]! - 1] = i + 1;
    return new RanksByNumber(ranks);
  }
}

/** Which rank a number has: for a node, which tells buyers how far they are. */
export class RanksByNumber {
  readonly array: Uint32Array;

  /** @param array the rank of number 1 at index 0, and so on */
  constructor(array: Uint32Array) {
    this.array = array;
  }

  /** @param number from 1. @throws RangeError */
  rankOf(number: number): number {
    return valueAt(this.array, number, 'number');
  }
}

/** Draws at once. A million places take 0.5 to 0.8 s. @throws RangeError if `entries` is out of its range */
export function draw(drawing: Drawing): NumbersByRank {
  const steps = drawInSteps(drawing);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** The same in steps of some milliseconds. A process that serves buyers lets them go first between two steps. */
export function* drawInSteps({ seed, entriesHash, entries }: Drawing): Generator<void, NumbersByRank> {
  if (!Number.isInteger(entries) || entries < 0 || entries > MAX_ENTRIES)
    throw new RangeError(`a draw of ${entries} entries: must be a whole number from 0 to ${MAX_ENTRIES}`);
  const numbers = sharedArray(entries);
  for (let i = 0; i < entries; i++) numbers[i] = i + 1;
  const { word } = new RandomNumbers(seed, entriesHash);
  for (let left = entries; left > 1; left--) {
    const chosen = below(left, word);
    const number = numbers[chosen]!;
    numbers[chosen] = numbers[left - 1]!;
    numbers[left - 1] = number;
    if (left % PLACES_PER_STEP === 0) yield;
  }
  return new NumbersByRank(numbers);
}

function sharedArray(length: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(length * Uint32Array.BYTES_PER_ELEMENT));
}

function valueAt(array: Uint32Array, place: number, what: string): number {
  const value = array[place - 1];
  if (value === undefined) throw new RangeError(`${what} ${place} of a draw of ${array.length} entries`);
  return value;
}
