/** Equivalent mutants of src/admission (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const ADMISSION: readonly Equivalent[] = [
  {
    file: 'src/admission/keyed-hash.ts',
    mutator: 'EqualityOperator',
    original: 'at < text.length',
    replacement: 'at <= text.length',
    why: 'behind its end a text has the code NaN, which sets no bit',
  },
];
