/** Equivalent mutants of src/engine/redis, TypeScript (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const REDIS: readonly Equivalent[] = [
  {
    file: 'src/engine/redis/take/joint-takes.ts',
    mutator: 'ConditionalExpression',
    original: 'this.#gathered.length === 0',
    replacement: 'true',
    why: 'the first callback of the turn sends all takes, and the others find none to send',
  },
];
