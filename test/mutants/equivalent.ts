/**
 * Mutants that are not bugs: with them the program does the same, or only works harder for it. No test could tell them apart, so
 * they are not planted. Each has its reason. The lists, in equivalent/, stay short, because code that can be written without such
 * a mutant is better that way.
 */
import { ADMISSION } from './equivalent/admission.ts';
import { ENGINE } from './equivalent/engine.ts';
import { LUA } from './equivalent/lua.ts';
import { OTHERS } from './equivalent/others.ts';
import { PURCHASE } from './equivalent/purchase.ts';
import { REDIS } from './equivalent/redis.ts';
import { SQL } from './equivalent/sql.ts';
import { SYNC } from './equivalent/sync.ts';
import type { Mutant } from './mutant.ts';

export interface Equivalent {
  readonly file: string;
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
  /** In a migration, whose lines never move: only mutants of this line. */
  readonly line?: number;
  /** How many mutants of the file are like this, all of them equivalent. Default: 1. */
  readonly copies?: number;
  readonly why: string;
}

export const EQUIVALENT: readonly Equivalent[] = [
  ...PURCHASE,
  ...REDIS,
  ...ENGINE,
  ...SYNC,
  ...ADMISSION,
  ...LUA,
  ...SQL,
  ...OTHERS,
];

/** @throws if an entry does not match as many mutants as it says, and so is out of date */
export function withoutEquivalent(
  mutants: readonly Mutant[],
  list: readonly Equivalent[] = EQUIVALENT,
): Mutant[] {
  const left = new Set(mutants);
  for (const { why, copies = 1, ...words } of list) {
    const names = Object.keys(words) as (keyof typeof words)[];
    const matching = mutants.filter((mutant) => names.every((name) => mutant[name] === words[name]));
    if (matching.length !== copies)
      throw new Error(
        `test/mutants/equivalent/ is out of date: ${matching.length} mutants, not ${copies}, are ${JSON.stringify(words)} (${why})`,
      );
    for (const mutant of matching) left.delete(mutant);
  }
  return [...left];
}
