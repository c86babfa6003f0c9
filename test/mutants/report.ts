/** The results of a run, for people and for programs. */

import { KINDS, type Kind, type Mutant } from './mutant.ts';
import type { Verdict } from './verdicts/judge.ts';

const SHOWN_CHARACTERS = 100;

export interface Summary {
  readonly seed: number;
  /** Planted mutants, without invalid ones. */
  readonly planted: number;
  /** Killed mutants, including endless loops. */
  readonly killed: number;
  readonly timedOut: number;
  /** Drawn mutants that the compiler or Postgres refused; others were drawn instead. */
  readonly invalid: number;
  /** 0 to 1. */
  readonly score: number;
  readonly kinds: Readonly<Record<Kind, { readonly planted: number; readonly killed: number }>>;
  readonly survivors: readonly (Omit<Mutant, 'start' | 'end' | 'switch' | 'literal'> & {
    readonly why: string;
  })[];
}

export function summaryOf(seed: number, verdicts: readonly Verdict[]): Summary {
  const planted = verdicts.filter(({ end }) => end !== 'invalid');
  const isKilled = ({ end }: Verdict) => end === 'killed' || end === 'timed out';
  const count = (some: readonly Verdict[]) => ({
    planted: some.length,
    killed: some.filter(isKilled).length,
  });
  const { killed } = count(planted);
  const survivors = planted
    .filter((verdict) => !isKilled(verdict))
    .map(({ mutant: { id, kind, file, line, mutator, original, replacement }, why }) => ({
      ...{ id, kind, file, line, mutator, original, replacement, why },
    }));
  return {
    seed,
    planted: planted.length,
    killed,
    timedOut: planted.filter(({ end }) => end === 'timed out').length,
    invalid: verdicts.length - planted.length,
    score: planted.length === 0 ? 1 : Math.round((killed / planted.length) * 1e4) / 1e4,
    kinds: Object.fromEntries(
      KINDS.map((kind) => [kind, count(planted.filter(({ mutant }) => mutant.kind === kind))]),
    ) as Summary['kinds'],
    survivors,
  };
}

export function textOf({ seed, planted, killed, timedOut, invalid, score, survivors }: Summary): string {
  const lines = survivors.map(
    (one) =>
      `${one.file}:${one.line} ${one.mutator} ${shown(one)}: ${one.why}\n  npm run mutants -- --only ${one.id}`,
  );
  return [
    ...lines,
    `${killed} of ${planted} mutants were killed (${(score * 100).toFixed(1)} %), ${timedOut} of them by a time limit; ${invalid} more were no valid program; seed ${seed}`,
  ].join('\n');
}

export function lineOf({ mutant, end, why, seconds }: Verdict, number: number): string {
  const { id, file, line, mutator } = mutant;
  return `${number} ${end} ${id} ${file}:${line} ${mutator} ${shown(mutant)} (${seconds} s; ${inOneLine(why)})`;
}

export function listed(mutants: readonly Mutant[], json: boolean): string {
  if (json)
    return JSON.stringify(mutants.map(({ start, end, switch: _, literal, ...shownToAll }) => shownToAll));
  return mutants.map((one) => `${one.id} ${one.file}:${one.line} ${one.mutator} ${shown(one)}`).join('\n');
}

const shown = ({ original, replacement }: Pick<Mutant, 'original' | 'replacement'>) =>
  `${inOneLine(original)} -> ${inOneLine(replacement) || '(nothing)'}`;

function inOneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > SHOWN_CHARACTERS ? `${line.slice(0, SHOWN_CHARACTERS)}…` : line;
}
