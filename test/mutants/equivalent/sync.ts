/** Equivalent mutants of src/sync (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const SYNC: readonly Equivalent[] = [];
