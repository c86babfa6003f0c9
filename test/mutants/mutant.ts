/** A mutant: a small change of the source, as a bug would be. */
import { createHash } from 'node:crypto';

export const KINDS = ['ts', 'lua', 'sql'] as const;
export type Kind = (typeof KINDS)[number];

/** A change that a mutator proposes: replaces the characters `start` to `end`. */
export interface Change {
  readonly mutator: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

export interface Mutant {
  /** Stays the same as long as the text around the mutant does, even if lines move. */
  readonly id: string;
  readonly kind: Kind;
  /** The path from the root of the repository. */
  readonly file: string;
  readonly line: number;
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
  /** The line in the file. */
  readonly start: number;
  readonly end: number;
  /**
   * The name of its switch in the instrumented source. For SQL in TypeScript, the switch of the string that contains
   * it.
   */
  readonly switch?: string | undefined;
  /** For SQL in TypeScript: the string that contains it, with its quotes. */
  readonly literal?: { readonly start: number; readonly end: number } | undefined;
}

export type Found = Change & Pick<Mutant, 'switch' | 'literal'>;

/** The mutants of one file, in the order of their positions. */
export function mutantsOf(kind: Kind, file: string, text: string, changes: readonly Found[]): Mutant[] {
  const seen = new Map<string, number>();
  return changes.map((change) => {
    const { mutator, start, end, replacement } = change;
    const original = text.slice(start, end);
    const words = [kind, file, mutator, original, replacement].join('\n');
    const nth = (seen.get(words) ?? 0) + 1;
    seen.set(words, nth);
    return {
      id: createHash('sha256').update(`${words}\n${nth}`).digest('hex').slice(0, 10),
      kind,
      file,
      line: lineAt(text, start),
      mutator,
      original,
      replacement,
      start,
      end,
      switch: change.switch,
      literal: change.literal,
    };
  });
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

/** The text with the mutant applied. */
export function mutated(text: string, { start, end, replacement }: Change): string {
  return text.slice(0, start) + replacement + text.slice(end);
}
