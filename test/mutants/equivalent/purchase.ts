/** Equivalent mutants of src/engine/purchase (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const PURCHASE: readonly Equivalent[] = [];
