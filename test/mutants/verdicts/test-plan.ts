/**
 * Decides which tests a mutant must pass, and in which order; the first that fails kills it. Unit tests come first, then the
 * contract suite. Another test comes early if it is short, if much of what it reaches is in the mutant's file, and if its folder
 * has the name of the mutant's folder in src/.
 *
 * A mutant that passes all unit and contract tests, and two minutes of the others, counts as a survivor, although a test that
 * was left out may kill it. So the score is too low rather than too high, and a mutant that every test reaches takes minutes
 * instead of half an hour.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { needsStores, SIMULATION } from '../copies/suites.ts';
import type { Mutant } from '../mutant.ts';
import { functionAt } from '../mutators/find-mutants.ts';
import type { Reach } from './coverage.ts';

/** Unit tests that take less time are run together, because starting vitest takes as long. */
const LONG_UNIT_TEST_MS = 10_000;
/** The limit for other tests, in time without a mutant. The first test is run however long it takes. */
const BUDGET_MS = 120_000;

/** A test of the mutant's folder counts as that much shorter. */
const FOLDER_WEIGHT = 4;

/** Tests that are run by one command. */
export interface TestGroup {
  readonly files: readonly string[];
  readonly needsStores: boolean;
  /** The time without a mutant. */
  readonly ms: number;
}

export class TestPlan {
  /** No test was left out because it had failed without a mutant. */
  readonly isWhole: boolean;
  readonly #root: string;
  readonly #reaches: readonly Reach[];
  readonly #scripts: ReadonlyMap<string, ReadonlySet<string>>;
  /** By the TypeScript file: the switches in it. */
  readonly #switches: ReadonlyMap<string, ReadonlySet<string>>;

  private constructor(
    root: string,
    mutants: readonly Mutant[],
    reaches: readonly Reach[],
    scripts: ReadonlyMap<string, ReadonlySet<string>>,
  ) {
    this.#root = root;
    this.#reaches = reaches.filter(({ passed }) => passed);
    this.isWhole = this.#reaches.length === reaches.length;
    this.#scripts = scripts;
    this.#switches = switchesByFile(mutants);
  }

  /** @param mutants the whole population */
  static async build(root: string, mutants: readonly Mutant[], reaches: readonly Reach[]): Promise<TestPlan> {
    return new TestPlan(root, mutants, reaches, await scriptsWith(root));
  }

  /** @returns an empty list if no test reaches the mutant */
  groupsFor(mutant: Mutant): TestGroup[] {
    const cost = ({ file, ms, seen }: Reach) =>
      ms / this.#focusOn(mutant, seen) / (folderOf(file) === folderOf(mutant.file) ? FOLDER_WEIGHT : 1);
    const reaches = this.#reaches
      .filter(({ seen }) => this.#isReachedBy(mutant, seen))
      .map((reach) => ({ ...reach, cost: cost(reach) }))
      .sort((a, b) => a.cost - b.cost);
    const unit = reaches.filter(
      ({ file, ms }) => !needsStores(file) && file !== SIMULATION && ms < LONG_UNIT_TEST_MS,
    );
    const contract = reaches.filter(({ file }) => file.startsWith('test/contract/'));
    const others = reaches.filter((reach) => !unit.includes(reach) && !contract.includes(reach));
    const group = (some: readonly Reach[]): TestGroup => ({
      files: some.map(({ file }) => file),
      needsStores: some.some(({ file }) => needsStores(file)),
      ms: some.reduce((sum, { ms }) => sum + ms, 0),
    });
    return [
      ...(unit.length > 0 ? [group(unit)] : []),
      ...[...contract, ...withinBudget(others)].map((reach) => group([reach])),
    ];
  }

  /** @returns the share of what a test reaches that is near the mutant: more than 0, at most 1 */
  #focusOn({ kind, file }: Mutant, { switches, scripts, functions }: Reach['seen']): number {
    if (kind === 'lua') return 1 / Math.max(1, scripts.length);
    const near = this.#switches.get(file);
    if (!near) return 1 / Math.max(1, functions.length);
    return Math.max(1, switches.filter((one) => near.has(one)).length) / Math.max(1, switches.length);
  }

  #isReachedBy(mutant: Mutant, { switches, files, scripts, functions }: Reach['seen']): boolean {
    if (mutant.switch !== undefined) return switches.includes(mutant.switch);
    if (mutant.kind === 'lua') {
      const hashes = this.#scripts.get(mutant.file)!;
      return scripts.some((hash) => hashes.has(hash));
    }
    const name = functionAt(readFileSync(join(this.#root, mutant.file), 'utf8'), mutant.start);
    // An index affects everything that writes.
    if (name === undefined) return files.includes('src/postgres/migrate.ts');
    const callers = callersOf(this.#root, name);
    return functions.some((called) => callers.has(called));
  }
}

/** `verify` for `src/verify/truth.ts` and for `test/integration/verify/verify.test.ts`. */
const folderOf = (file: string) => file.split('/').at(file.startsWith('src/') ? 1 : 2);

function switchesByFile(mutants: readonly Mutant[]): Map<string, Set<string>> {
  const byFile = new Map<string, Set<string>>();
  for (const { file, switch: name } of mutants) {
    if (name === undefined) continue;
    const some = byFile.get(file) ?? new Set();
    byFile.set(file, some.add(name));
  }
  return byFile;
}

function withinBudget(reaches: readonly Reach[]): Reach[] {
  let spent = 0;
  return reaches.filter(({ ms }, i) => {
    spent += ms;
    return i === 0 || spent <= BUDGET_MS;
  });
}

/** The function, and the functions that call it, also through others. */
function callersOf(root: string, name: string): Set<string> {
  const folder = join(root, 'src/postgres/migrations');
  const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
  const callers = new Set([name]);
  // A set's loop also visits what is added meanwhile.
  for (const called of callers)
    for (const text of texts)
      for (const { index } of text.matchAll(new RegExp(`\\b${called}\\(`, 'g')))
        callers.add(functionAt(text, index) ?? called);
  return callers;
}

/** By the file: the SHA-1 hashes of the scripts that contain it, with a fencing check and without. */
async function scriptsWith(root: string): Promise<Map<string, Set<string>>> {
  const load = (file: string) => import(pathToFileURL(join(root, file)).href);
  const { luaSource } = (await load('src/engine/redis/protocol/lua-source.ts')) as {
    luaSource(name: string): string;
  };
  const { fenced } = (await load('src/locks/fenced.ts')) as { fenced(lua: string): string };
  const hashes = new Map<string, Set<string>>();
  const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
  const redis = 'src/engine/redis/lua/';
  const locks = 'src/locks/lua/';
  const note = (file: string, ...sources: string[]) => {
    const some = hashes.get(file) ?? new Set();
    for (const source of sources) some.add(sha1(source));
    hashes.set(file, some);
  };
  for (const name of scriptsBelow(join(root, redis))) {
    const script = luaSource(name.replace('.lua', ''));
    for (const part of partsOf(root, `${redis}${name}`)) note(part, script, fenced(script));
    note(`${locks}fenced.lua`, fenced(script));
  }
  // Tests of the locks wrap their own scripts in the fencing check; each of them acquires a lock first.
  for (const name of scriptsBelow(join(root, locks)))
    for (const file of [name, 'fenced.lua'])
      note(`${locks}${file}`, readFileSync(join(root, locks, name), 'utf8'));
  return hashes;
}

const scriptsBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lua'));

function partsOf(root: string, file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const included = [...text.matchAll(/--include ([\w/-]+)/g)].map(
    ([, name]) => `src/engine/redis/lua/${name}.lua`,
  );
  return [file, ...included.flatMap((part) => partsOf(root, part))];
}
