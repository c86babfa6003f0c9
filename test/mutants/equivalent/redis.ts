/** Equivalent mutants of src/engine/redis, TypeScript (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const REDIS: readonly Equivalent[] = [];
