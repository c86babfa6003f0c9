/** Equivalent mutants of the other folders of src/engine (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const ENGINE: readonly Equivalent[] = [
  {
    file: 'src/engine/memory/memory-segment.ts',
    mutator: 'EqualityOperator',
    original: 'seq <= this.committed',
    replacement: 'seq < this.committed',
    why: 'a cursor that is known already sets the values that are set',
  },
  {
    file: 'src/engine/memory/memory-backend.ts',
    mutator: 'UpdateOperator',
    original: 'this.#changes++',
    replacement: 'this.#changes--',
    why: 'nobody asks more of the counter than whether it has changed',
  },
];
