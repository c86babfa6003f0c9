/** A mutant: a place in the source whose words are replaced by others, as a bug would have them. */
import { createHash } from 'node:crypto';

export const KINDS = ['ts', 'lua', 'sql'] as const;
export type Kind = (typeof KINDS)[number];

/** What a mutator finds in a text: characters `start` to `end`, and what stands there instead. */
export interface Change {
  readonly mutator: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

export interface Mutant {
  /** The same as long as the words around it are: lines may come and go above it. */
  readonly id: string;
  readonly kind: Kind;
  /** From the root of the repository. */
  readonly file: string;
  readonly line: number;
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
  /** In the file. */
  readonly start: number;
  readonly end: number;
  /** The name of its switch in the instrumented source; of SQL in TypeScript, the switch of the text that it is in. */
  readonly switch?: string | undefined;
  /** SQL in TypeScript: the text that it is in, with its quotes. */
  readonly literal?: { readonly start: number; readonly end: number } | undefined;
}

export type Found = Change & Pick<Mutant, 'switch' | 'literal'>;

/** Mutants of one file, in its order. */
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

/** The text with the mutant in it. */
export function mutated(text: string, { start, end, replacement }: Change): string {
  return text.slice(0, start) + replacement + text.slice(end);
}
