/**
 * Copies of the repository in which mutants are planted. The repository itself is never touched.
 *
 *   instrumented   all mutants of TypeScript, each behind its switch: one is on at a time, by a word in a file
 *   plain          as it is: one mutant of Lua or SQL at a time, as an edit of the text
 *
 * In each of them vitest runs src/, and nodes that tests start run dist/, which has the same mutant.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SWITCH_MODULE } from './find-mutants.ts';
import { type Mutant, mutated } from './mutant.ts';
import type { SwitchState } from './mutant-switch.ts';

/** What git knows nothing of, or is linked. */
const LEFT_OUT = new Set(['.git', '.stockade', 'dist', 'node_modules']);

export class Tree {
  /** With a slash at its end. */
  readonly root: string;
  #undo: (() => void)[] = [];

  private constructor(root: string) {
    this.root = root;
  }

  /** @param replaced texts of files, by their paths; new ones among them */
  static async plant(from: string, replaced: ReadonlyMap<string, string>): Promise<Tree> {
    const root = `${mkdtempSync(join(tmpdir(), 'stockade-mutants-'))}/`;
    const tree = new Tree(root);
    try {
      for (const name of readdirSync(from))
        if (!LEFT_OUT.has(name)) cpSync(join(from, name), join(root, name), { recursive: true });
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
    // Its folder has no types of the tools that it watches with.
    return Tree.plant(from, new Map([...files, [`${SWITCH_MODULE}.ts`, `// @ts-nocheck\n${switches}`]]));
  }

  static plain(from: string): Promise<Tree> {
    return Tree.plant(from, new Map());
  }

  switchTo(state: SwitchState): void {
    writeFileSync(join(this.root, 'mutant-state.json'), JSON.stringify(state));
  }

  /** Puts the mutant in, behind its switch or as text. */
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
  }

  /** Also one of TypeScript as text, in src/ only: for the compiler. */
  putSource(mutant: Mutant): void {
    this.#write(mutant.file, mutated(this.#read(mutant.file), mutant));
  }

  /** Takes out what was put in. */
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
    // What still runs in it may write while it goes.
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** The compiler hands texts on as they are, in their order; what is between them it changes. */
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

async function build(root: string): Promise<void> {
  try {
    await promisify(execFile)(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`a copy of the source can't be built:\n${stdout}${stderr}`, { cause: error });
  }
}
