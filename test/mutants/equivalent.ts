/**
 * Mutants that are not bugs: with them the program does the same, or only works harder for it. No test could tell them apart, so
 * they are not planted. Each has its reason. The list is short, because code that can be written without such a mutant is better
 * that way.
 */
import type { Mutant } from './mutant.ts';

export interface Equivalent {
  readonly file: string;
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
  readonly why: string;
}

export const EQUIVALENT: readonly Equivalent[] = [
  {
    file: 'src/lib/fifo.ts',
    mutator: 'EqualityOperator',
    original: 'this.#head * 2 > this.#items.length',
    replacement: 'this.#head * 2 >= this.#items.length',
    why: 'the array is copied one shift sooner: the same order, the same amortised cost',
  },
  {
    file: 'src/engine/redis/lua/parts/batch-lines.lua',
    mutator: 'OperandDropped',
    original: "quantity == '1' and 1 or tonumber(quantity)",
    replacement: 'tonumber(quantity)',
    why: 'the same number, by a call that most orders save',
  },
  {
    file: 'src/engine/redis/lua/purchase/take.lua',
    mutator: 'OperandDropped',
    original: "quantity == 1 and '1' or string.format('%d', quantity)",
    replacement: "string.format('%d', quantity)",
    why: 'the same text, by a call that most orders save',
  },
  {
    file: 'src/verify/counters.ts',
    mutator: 'EqualityOperator',
    original: 'soldGap > 0',
    replacement: 'soldGap >= 0',
    why: 'a gap of 0 has returned before',
  },
];

/** @throws if an entry does not match exactly one mutant, and so is out of date */
export function withoutEquivalent(
  mutants: readonly Mutant[],
  list: readonly Equivalent[] = EQUIVALENT,
): Mutant[] {
  const left = new Set(mutants);
  for (const { why, ...words } of list) {
    const names = Object.keys(words) as (keyof typeof words)[];
    const matching = mutants.filter((mutant) => names.every((name) => mutant[name] === words[name]));
    if (matching.length !== 1)
      throw new Error(
        `test/mutants/equivalent.ts is out of date: ${matching.length} mutants, not one, are ${JSON.stringify(words)} (${why})`,
      );
    left.delete(matching[0]!);
  }
  return [...left];
}
