/**
 * The sold-out board: which sales have nothing left, in memory that all worker threads of a node share, so that the
 * crowd behind the last unit is answered without any I/O.
 *
 * Per sale three 32-bit slots: `epoch`, `soldOutEpoch` and `confirmed`. Sold out is `soldOutEpoch === epoch`.
 * - A sale is closed only with the observation "nothing anywhere" made wholly within one epoch: `close(slot, epoch)`.
 * - Whatever gives stock back raises the epoch. A node that learns the newer epoch has thereby reopened the sale:
 *   there is no flag to clear, and a late "sold out" of an older epoch can't shut a newer one.
 * - Both epochs only ever rise (compare-and-swap), so writers need no order among themselves. A reader loads
 *   `soldOutEpoch` first: if the two are equal then, the epoch was still that one when it was read.
 * - A backend that has gone back may have its old epoch and units again. So whoever has lost a connection to it opens all
 *   sales (`reopenAll`): the next buyer asks the backend, whose segments notice what they have lost.
 * - `confirmed` is when the epoch was last known to be current. A board that can't be confirmed (the poll is late, the
 *   backend away) stops answering: a "sold out" is never older than BOARD_REPAIR_MS.
 */

import { monotonicMs } from '../../lib/monotonic.ts';
import { BOARD_REPAIR_MS } from '../limits.ts';

const SLOTS_PER_SALE = 3;
const EPOCH = 0;
const SOLD_OUT_EPOCH = 1;
const CONFIRMED = 2;

/** A sale that has no place on the board: it is never seen as sold out, so that its buyers are answered by the backend. */
export const NO_SLOT = -1;

export class Board {
  readonly buffer: SharedArrayBuffer;
  readonly #slots: Int32Array;
  readonly capacity: number;

  /** @param memory the number of sales to make room for, or the buffer of a board to share */
  constructor(memory: number | SharedArrayBuffer) {
    this.buffer =
      typeof memory === 'number'
        ? new SharedArrayBuffer(memory * SLOTS_PER_SALE * Int32Array.BYTES_PER_ELEMENT)
        : memory;
    this.#slots = new Int32Array(this.buffer);
    this.capacity = this.#slots.length / SLOTS_PER_SALE;
  }

  isSoldOut(slot: number): boolean {
    if (slot === NO_SLOT) return false;
    const at = slot * SLOTS_PER_SALE;
    const soldOut = Atomics.load(this.#slots, at + SOLD_OUT_EPOCH);
    if (soldOut === 0 || soldOut !== Atomics.load(this.#slots, at + EPOCH)) return false;
    const age = (wrapped(monotonicMs()) - Atomics.load(this.#slots, at + CONFIRMED)) | 0;
    return Math.abs(age) <= BOARD_REPAIR_MS;
  }

  /** Whether the sale was seen sold out in its newest known epoch, however long ago: such sales are polled. */
  isClosed(slot: number): boolean {
    return slot !== NO_SLOT && this.#load(slot, SOLD_OUT_EPOCH) === this.epoch(slot) && this.epoch(slot) > 0;
  }

  epoch(slot: number): number {
    return slot === NO_SLOT ? 0 : this.#load(slot, EPOCH);
  }

  /** The backend said that `epoch` is the sale's epoch; `asked` is `monotonicMs()` from before it was asked. */
  learn(slot: number, epoch: number, asked: number): void {
    if (slot === NO_SLOT) return;
    this.#raise(slot, EPOCH, epoch);
    if (this.epoch(slot) === epoch)
      Atomics.store(this.#slots, slot * SLOTS_PER_SALE + CONFIRMED, wrapped(asked));
  }

  /** Every segment was seen empty, and nothing in transit, at `epoch`; `asked` as in `learn`. */
  close(slot: number, epoch: number, asked: number): void {
    if (slot === NO_SLOT) return;
    this.learn(slot, epoch, asked);
    this.#raise(slot, SOLD_OUT_EPOCH, epoch);
  }

  /** Nothing that was seen empty is known to be so any more. Epochs stay: what is seen from now on closes a sale again. */
  reopenAll(): void {
    for (let slot = 0; slot < this.capacity; slot++) {
      Atomics.store(this.#slots, slot * SLOTS_PER_SALE + SOLD_OUT_EPOCH, 0);
    }
  }

  #load(slot: number, which: number): number {
    return Atomics.load(this.#slots, slot * SLOTS_PER_SALE + which);
  }

  #raise(slot: number, which: number, value: number): void {
    const at = slot * SLOTS_PER_SALE + which;
    for (let seen = Atomics.load(this.#slots, at); seen < value; ) {
      const found = Atomics.compareExchange(this.#slots, at, seen, value);
      if (found === seen) return;
      seen = found;
    }
  }
}

/** A clock in 32 bits wraps every 49 days; differences, taken in 32 bits as well, stay right. */
const wrapped = (ms: number) => Math.floor(ms) | 0;
