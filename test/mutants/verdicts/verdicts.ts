/**
 * Keeps verdicts in the machine's folder for temporary files, so that a run that was stopped can be continued: a mutant that was
 * judged in the same repository, byte for byte, is not planted again.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copiedFiles } from '../copies/trees.ts';
import type { Mutant } from '../mutant.ts';
import type { Verdict } from './judge.ts';

type Line = Omit<Verdict, 'mutant'> & { readonly id: string };

export class Verdicts {
  readonly #path: string;
  readonly #known: ReadonlyMap<string, Line>;

  /**
   * @param root of the repository, ending in a slash
   * @param folder one file is written there for each state of the repository
   */
  constructor(root: string, folder = join(tmpdir(), 'stockade-mutants-verdicts')) {
    mkdirSync(folder, { recursive: true });
    this.#path = join(folder, `${digestOf(root)}.jsonl`);
    const text = existsSync(this.#path) ? readFileSync(this.#path, 'utf8') : '';
    // A run that was killed while it wrote leaves a part of a line.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    if (whole !== text) writeFileSync(this.#path, whole);
    const lines = whole.split('\n').filter((line) => line !== '');
    this.#known = new Map(lines.map((line) => JSON.parse(line) as Line).map((line) => [line.id, line]));
  }

  /** The number of verdicts that earlier runs have kept. */
  get size(): number {
    return this.#known.size;
  }

  of(mutant: Mutant): Verdict | undefined {
    const line = this.#known.get(mutant.id);
    return line && { mutant, end: line.end, why: line.why, seconds: line.seconds };
  }

  keep({ mutant: { id }, end, why, seconds }: Verdict): void {
    appendFileSync(this.#path, `${JSON.stringify({ id, end, why, seconds } satisfies Line)}\n`);
  }
}

function digestOf(root: string): string {
  const hash = createHash('sha256');
  for (const file of copiedFiles(root)) {
    const text = readFileSync(join(root, file));
    hash.update(`${file}\n${text.length}\n`).update(text);
  }
  return hash.digest('hex').slice(0, 16);
}
