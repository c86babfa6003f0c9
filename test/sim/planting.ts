/**
 * Plants bugs without any switches in the program: each in a copy of the source, in which its text is replaced. The copy is then
 * run like the repository itself.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Mutation } from './mutations.ts';
import { ROOT, type Runner, withRunners } from './seed-processes.ts';

const COPIED = ['src', 'test/sim', 'test/support/random.ts', 'test/support/author.ts'];
const LINKED = ['node_modules', 'package.json', 'tsconfig.json'];

export interface Found {
  readonly seed: number;
  /** How many seeds were run until one found it. */
  readonly tried: number;
  readonly violation: string;
}

export interface PlantOptions {
  readonly mutations: readonly Mutation[];
  /** Seeds to try after those that are known to find it. */
  readonly first: number;
  readonly count: number;
  /** How many mutations are tried side by side. */
  readonly processes: number;
}

/** @returns the mutations that were found, by name */
export async function plantAll(
  { mutations, first, count, processes }: PlantOptions,
  told: (mutation: Mutation, found: Found | undefined) => void,
): Promise<ReadonlyMap<string, Found>> {
  const found = new Map<string, Found>();
  const queue = [...mutations];
  await withRunners(processes, async (runner) => {
    for (let mutation = queue.shift(); mutation; mutation = queue.shift()) {
      const end = await plant(runner, mutation, first, count);
      if (end) found.set(mutation.name, end);
      told(mutation, end);
    }
  });
  return found;
}

async function plant(
  runner: Runner,
  mutation: Mutation,
  first: number,
  count: number,
): Promise<Found | undefined> {
  const root = `${mkdtempSync(join(tmpdir(), 'stockade-mutation-'))}/`;
  try {
    copyInto(root, mutation);
    let tried = 0;
    for (const seed of seedsOf(mutation, first, count)) {
      const { violation } = await runner.run({ root, seed });
      tried++;
      if (violation !== undefined) return { seed, tried, violation };
    }
    return undefined;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function* seedsOf({ seenIn }: Mutation, first: number, count: number): Generator<number> {
  yield* seenIn;
  for (let seed = first; seed < first + count - seenIn.length; seed++) yield seed;
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
