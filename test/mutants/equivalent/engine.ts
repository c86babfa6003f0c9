/** Equivalent mutants of the other folders of src/engine (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const ENGINE: readonly Equivalent[] = [];
