/**
 * Copies of the repository in which mutants are planted. The repository itself is never changed.
 *
 *   instrumented   has all TypeScript mutants, each behind a switch: one is on at a time, chosen by a file
 *   plain          is unchanged, except for one mutant of Lua or SQL at a time, applied as an edit
 *
 * In both, vitest runs src/, and nodes that tests start run dist/, which has the same mutant.
 */
import { execFile, execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { type Mutant, mutated } from '../mutant.ts';
import { SWITCH_MODULE } from '../mutators/find-mutants.ts';
import type { SwitchState } from './mutant-switch.ts';

/** Files that are not in git, or are linked. */
const LEFT_OUT = new Set(['.git', '.stockade', 'dist', 'node_modules']);

/** Those of scripts/bundle.mjs. */
const BUNDLES = ['dist/cli/main.cjs', 'dist/node/worker/worker-thread.cjs'].flatMap((file) => [
  file,
  `${file}.cache`,
]);

const BUILD_CONFIG = 'tsconfig.build.json';

/** The files of the repository that a copy has too, as paths from its root. */
export function copiedFiles(root: string): string[] {
  const below = (name: string) =>
    statSync(join(root, name)).isDirectory()
      ? readdirSync(join(root, name), { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      : [name];
  return copiedEntries(root).flatMap(below).sort();
}

const copiedEntries = (root: string) => readdirSync(root).filter((name) => !LEFT_OUT.has(name));

export class Tree {
  /** Ends in a slash. */
  readonly root: string;
  #undo: (() => void)[] = [];

  private constructor(root: string) {
    this.root = root;
  }

  /** @param replaced the texts of files that differ, by their paths; new files too */
  static async plant(from: string, replaced: ReadonlyMap<string, string>): Promise<Tree> {
    const root = `${mkdtempSync(join(tmpdir(), 'stockade-mutants-'))}/`;
    const tree = new Tree(root);
    try {
      for (const name of copiedEntries(from)) cpSync(join(from, name), join(root, name), { recursive: true });
      symlinkSync(join(from, 'node_modules'), join(root, 'node_modules'));
      for (const [file, text] of replaced) writeFileSync(join(root, file), text);
      await build(root);
      return tree;
    } catch (error) {
      tree.fell();
      throw error;
    }
  }

  static instrumented(from: string, files: ReadonlyMap<string, string>): Promise<Tree> {
    const switches = readFileSync(new URL('./mutant-switch.ts', import.meta.url), 'utf8');
    const replaced = new Map([...files, [`${SWITCH_MODULE}.ts`, switches], [BUILD_CONFIG, unchecked(from)]]);
    return Tree.plant(from, replaced);
  }

  static plain(from: string): Promise<Tree> {
    return Tree.plant(from, new Map());
  }

  switchTo(state: SwitchState): void {
    writeFileSync(join(this.root, 'mutant-state.json'), JSON.stringify(state));
  }

  /** Applies the mutant, by its switch or as text. */
  put(mutant: Mutant): void {
    if (mutant.kind === 'ts') {
      this.switchTo({ on: mutant.switch });
      return;
    }
    const source = this.#read(mutant.file);
    const built = mutant.file.replace(/^src\//, 'dist/').replace(/\.ts$/, '.js');
    const inBuilt = mutant.literal ? inCompiled(source, this.#read(built), mutant) : mutated(source, mutant);
    this.#write(mutant.file, mutated(source, mutant));
    this.#write(built, inBuilt);
    if (mutant.literal) this.#bundle();
  }

  /** The programs contain the texts of src/. Files that the programs read have no copy in them. */
  #bundle(): void {
    for (const file of BUNDLES) {
      const path = join(this.root, file);
      const before = readFileSync(path);
      this.#undo.push(() => writeFileSync(path, before));
    }
    execFileSync(process.execPath, [join(this.root, 'scripts', 'bundle.mjs')], { stdio: 'pipe' });
  }

  /** Applies any mutant as text, in src/ only: for the compiler. */
  putSource(mutant: Mutant): void {
    this.#write(mutant.file, mutated(this.#read(mutant.file), mutant));
  }

  /** Takes the mutant out again. */
  restore(): void {
    this.switchTo({});
    for (const undo of this.#undo.splice(0)) undo();
  }

  #read(file: string): string {
    return readFileSync(join(this.root, file), 'utf8');
  }

  #write(file: string, text: string): void {
    const path = join(this.root, file);
    const before = readFileSync(path, 'utf8');
    this.#undo.push(() => writeFileSync(path, before));
    writeFileSync(path, text);
  }

  fell(): void {
    // A process that still runs in it may write while it is removed.
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/**
 * Finds a string in the compiled file: the compiler keeps strings and their order, and changes the code between them.
 */
function inCompiled(source: string, compiled: string, mutant: Mutant): string {
  const { start, end } = mutant.literal!;
  const words = source.slice(start, end);
  const nth = source.slice(0, start).split(words).length;
  const parts = compiled.split(words);
  if (parts.length !== source.split(words).length)
    throw new Error(`the compiler has changed a text of ${mutant.file}, line ${mutant.line}`);
  const changed = mutated(words, { ...mutant, start: mutant.start - start, end: mutant.end - start });
  return parts.slice(0, nth).join(words) + changed + parts.slice(nth).join(words);
}

/** Switches hide types from the compiler, also from files that import those with switches. So it must not check any. */
function unchecked(from: string): string {
  const config = JSON.parse(readFileSync(join(from, BUILD_CONFIG), 'utf8')) as { compilerOptions: object };
  return JSON.stringify({ ...config, compilerOptions: { ...config.compilerOptions, noCheck: true } });
}

async function build(root: string): Promise<void> {
  try {
    await promisify(execFile)(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`a copy of the source can't be built:\n${stdout}${stderr}`, { cause: error });
  }
}
