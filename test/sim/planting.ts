/**
 * Plants bugs without any switches in the program: each in a copy of the source, in which its text is replaced. The copy is then
 * run like the repository itself.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Conditions } from './conditions.ts';
import type { Mutation } from './mutations.ts';
import { ROOT, type Runner } from './seed-processes.ts';

const COPIED = ['src', 'test/sim', 'test/support/random.ts', 'test/support/author.ts'];
const LINKED = ['node_modules', 'package.json', 'tsconfig.json'];

export interface Found {
  /** The first seed that found it. */
  readonly seed: number;
  /** How many seeds found it. */
  readonly seeds: number;
  /** How many seeds were run. */
  readonly tried: number;
  readonly violation: string;
}

export interface PlantOptions {
  readonly mutations: readonly Mutation[];
  readonly first: number;
  readonly count: number;
  /** Instead of those that the mutation names. */
  readonly conditions?: Conditions | undefined;
  /** Run all seeds, to count those that find it; otherwise only until one finds it. */
  readonly everySeed?: boolean;
}

/** @returns the mutations that were found, by name */
export async function plantAll(
  runners: readonly Runner[],
  { mutations, ...options }: PlantOptions,
  told: (mutation: Mutation, found: Found | undefined) => void = () => {},
): Promise<ReadonlyMap<string, Found>> {
  const found = new Map<string, Found>();
  const queue = [...mutations];
  const work = async (runner: Runner) => {
    for (let mutation = queue.shift(); mutation; mutation = queue.shift()) {
      const end = await plant(runner, mutation, options);
      if (end) found.set(mutation.name, end);
      told(mutation, end);
    }
  };
  await Promise.all(runners.map(work));
  return found;
}

async function plant(
  runner: Runner,
  mutation: Mutation,
  { first, count, conditions = mutation.conditions, everySeed = false }: Omit<PlantOptions, 'mutations'>,
): Promise<Found | undefined> {
  const root = `${mkdtempSync(join(tmpdir(), 'stockade-mutation-'))}/`;
  try {
    copyInto(root, mutation);
    let found: Found | undefined;
    for (let seed = first; seed < first + count && (everySeed || !found); seed++) {
      const { violation } = await runner.run({ root, seed, conditions });
      const tried = seed - first + 1;
      if (violation !== undefined)
        found = { seed, violation, ...found, seeds: (found?.seeds ?? 0) + 1, tried };
      else if (found) found = { ...found, tried };
    }
    return found;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function copyInto(copy: string, { name, edits }: Mutation): void {
  mkdirSync(join(copy, 'test/support'), { recursive: true });
  for (const path of COPIED) cpSync(join(ROOT, path), join(copy, path), { recursive: true });
  for (const path of LINKED) symlinkSync(join(ROOT, path), join(copy, path));
  for (const { file, find, replace } of edits) {
    const path = join(copy, file);
    const text = readFileSync(path, 'utf8');
    if (text.split(find).length !== 2)
      throw new Error(
        `mutation "${name}" is out of date: ${file} does not hold ${JSON.stringify(find)} once`,
      );
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
  }
}
