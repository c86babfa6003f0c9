/** Equivalent mutants of all other folders of src (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const OTHERS: readonly Equivalent[] = [
  {
    file: 'src/lib/fifo.ts',
    mutator: 'EqualityOperator',
    original: 'this.#head * 2 > this.#items.length',
    replacement: 'this.#head * 2 >= this.#items.length',
    why: 'the array is copied one shift sooner: the same order, the same amortised cost',
  },
  {
    file: 'src/verify/counters.ts',
    mutator: 'EqualityOperator',
    original: 'soldGap > 0',
    replacement: 'soldGap >= 0',
    why: 'a gap of 0 has returned before',
  },
];
