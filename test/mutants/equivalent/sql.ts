/** Equivalent mutants of SQL, in strings and in the migrations (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const SQL: readonly Equivalent[] = [];
