import { type Board, NO_SLOT } from './board.ts';

/**
 * Gives out the slots of a board. A slot belongs to one generation of one sale, because another generation may count its epochs
 * from the beginning. It is given out again, but only when no thread can use it for its old owner any more:
 *
 *   free ──take──> in use ──the view is replaced or gone; each thread is told──> leaving ──all have answered──> cleared, free
 *
 * A thread that does not answer keeps the slot `leaving`. So it is lost for the life of the node, and does no harm.
 */
export class BoardSlots {
  readonly #board: Board;
  readonly #free: number[] = [];
  /** Slots from here on were never used. */
  #next = 0;

  constructor(board: Board) {
    this.#board = board;
  }

  /** Slots that are in use or leaving. */
  get used(): number {
    return this.#next - this.#free.length;
  }

  /** @returns NO_SLOT if the board is full */
  take(): number {
    return this.#free.pop() ?? (this.#next < this.#board.capacity ? this.#next++ : NO_SLOT);
  }

  /**
   * @param told resolves when no thread uses the slot any more. If it rejects, a thread may still use it, so it is not given
   * out again
   */
  release(slot: number, told: Promise<unknown>): void {
    if (slot === NO_SLOT) return;
    const free = () => {
      this.#board.clear(slot);
      this.#free.push(slot);
    };
    told.then(free, () => {});
  }
}
