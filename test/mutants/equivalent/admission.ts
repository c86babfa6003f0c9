/** Equivalent mutants of src/admission (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const ADMISSION: readonly Equivalent[] = [];
