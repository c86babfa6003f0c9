/**
 * The sold-out board: which sales have nothing left, in memory that all worker threads of a node share. It answers
 * buyers of a sold-out sale without any I/O.
 *
 * Each sale has a slot (slots.ts) with three 32-bit words: `epoch`, `soldOutEpoch` and `confirmed`. A sale is sold out if
 * `soldOutEpoch === epoch`.
 * - A sale is closed only after an observation, made wholly within one epoch, that nothing is left anywhere:
 *   `close(slot, epoch)`.
 * - Each return of stock raises the epoch. As soon as a node learns the newer epoch, the sale is open on its board: there
 *   is no flag to clear, and a late "sold out" of an older epoch can't close a newer one.
 * - Both epochs only rise (compare-and-swap), so writers may write in any order. A reader loads `soldOutEpoch` before
 *   `epoch`. If the two are equal, the sale was sold out in the epoch that was current at the second load.
 * - A backend that has lost writes may have its old epoch and units again. So a worker that has lost a connection to
 *   it reopens all sales (`reopenAll`): the next buyer asks the backend, whose segments detect lost writes.
 * - `confirmed` is when the epoch was last known to be current. If that is too long ago (the poll is late, the
 *   backend can't be reached), the board gives no answer: a "sold out" is never older than BOARD_REPAIR_MS.
 */

import { monotonicMs } from '../../lib/monotonic.ts';
import { BOARD_REPAIR_MS } from '../limits.ts';

const WORDS_PER_SLOT = 3;
const EPOCH = 0;
const SOLD_OUT_EPOCH = 1;
const CONFIRMED = 2;

/** A sale without a place on the board: the board never calls it sold out, so the backend answers its buyers. */
export const NO_SLOT = -1;

export class Board {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly capacity: number;

  /** @param memory the number of sales to make room for, or the buffer of a board to share */
  constructor(memory: number | SharedArrayBuffer) {
    this.buffer =
      typeof memory === 'number'
        ? new SharedArrayBuffer(memory * WORDS_PER_SLOT * Int32Array.BYTES_PER_ELEMENT)
        : memory;
    this.#words = new Int32Array(this.buffer);
    this.capacity = this.#words.length / WORDS_PER_SLOT;
  }

  isSoldOut(slot: number): boolean {
    if (slot === NO_SLOT) return false;
    const at = slot * WORDS_PER_SLOT;
    const soldOut = Atomics.load(this.#words, at + SOLD_OUT_EPOCH);
    if (soldOut === 0 || soldOut !== Atomics.load(this.#words, at + EPOCH)) return false;
    const age = (wrapped(monotonicMs()) - Atomics.load(this.#words, at + CONFIRMED)) | 0;
    return Math.abs(age) <= BOARD_REPAIR_MS;
  }

  /**
   * Whether the sale was sold out in its newest known epoch, however long ago that was observed. Such sales are
   * polled.
   */
  isClosed(slot: number): boolean {
    return slot !== NO_SLOT && this.#load(slot, SOLD_OUT_EPOCH) === this.epoch(slot) && this.epoch(slot) > 0;
  }

  epoch(slot: number): number {
    return slot === NO_SLOT ? 0 : this.#load(slot, EPOCH);
  }

  /** Records that the backend returned `epoch`; `asked` is `monotonicMs()` from before the query. */
  learn(slot: number, epoch: number, asked: number): void {
    if (slot === NO_SLOT) return;
    this.#raise(slot, EPOCH, epoch);
    if (this.epoch(slot) === epoch)
      Atomics.store(this.#words, slot * WORDS_PER_SLOT + CONFIRMED, wrapped(asked));
  }

  /** Records that every segment was empty and nothing in transit at `epoch`; `asked` as in `learn`. */
  close(slot: number, epoch: number, asked: number): void {
    if (slot === NO_SLOT) return;
    this.learn(slot, epoch, asked);
    this.#raise(slot, SOLD_OUT_EPOCH, epoch);
  }

  /** Resets the slot, as if it had never been used. Call it only when no thread uses the slot. */
  clear(slot: number): void {
    for (let which = 0; which < WORDS_PER_SLOT; which++)
      Atomics.store(this.#words, slot * WORDS_PER_SLOT + which, 0);
  }

  /** Forgets which sales were sold out. Epochs stay, so that new observations can close a sale again. */
  reopenAll(): void {
    for (let slot = 0; slot < this.capacity; slot++) {
      Atomics.store(this.#words, slot * WORDS_PER_SLOT + SOLD_OUT_EPOCH, 0);
    }
  }

  #load(slot: number, which: number): number {
    return Atomics.load(this.#words, slot * WORDS_PER_SLOT + which);
  }

  #raise(slot: number, which: number, value: number): void {
    const at = slot * WORDS_PER_SLOT + which;
    for (let seen = this.#load(slot, which); seen < value; seen = this.#load(slot, which))
      Atomics.compareExchange(this.#words, at, seen, value);
  }
}

/** A clock in 32 bits wraps every 49 days; differences, taken in 32 bits as well, stay right. */
const wrapped = (ms: number) => Math.floor(ms) | 0;
