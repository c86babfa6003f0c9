/** Equivalent mutants of src/sync (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const SYNC: readonly Equivalent[] = [
  {
    file: 'src/sync/apply/batch.ts',
    mutator: 'ConditionalExpression',
    original: 'rejected.size === 0',
    replacement: 'false',
    why: 'A shortcut: among no rejections the search of all orders finds none.',
  },
  {
    file: 'src/sync/apply/batch.ts',
    mutator: 'ConditionalExpression',
    original: 'older.length === 0',
    replacement: 'false',
    why: 'A shortcut: without older rejections, the copy has the same content as the watermark.',
  },
];
