/**
 * Plants bugs without any switches in the program: each in a bundle of the source, in which its text is replaced. To bundle the
 * source costs a tenth of the processor time that Node.js takes to load a copy of each file.
 */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import type { Conditions } from '../plan/conditions.ts';
import { ROOT, type Runner, SESSION } from '../seed-processes.ts';
import type { KnownSeeds } from './known-seeds.ts';
import type { Mutation } from './mutations.ts';

const MIGRATIONS = 'src/postgres/migrations';
/** What the program reads as files, from beside its source. */
const ASSETS = ['src/engine/redis/lua', 'src/locks/lua', MIGRATIONS];
/** Folders with modules that a bundle may hold. */
const SOURCES = ['src', 'test/sim', 'test/support'];
const OWN_URL = 'import.meta.url';

/** esbuild is written in Go. By default it spends two fifths of its processor time on garbage. */
const LESS_COLLECTION = '400';

export interface Found {
  /** Of the seeds that found it, the one that took the least processor time. */
  readonly seed: number;
  readonly cpuMs: number;
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
  /** Seeds that have found bugs, by the bug's name. They come first. */
  readonly known?: KnownSeeds;
  /** Run all seeds, to count those that find it; otherwise only until one finds it. */
  readonly everySeed?: boolean;
}

/** Anything would find a bug that only breaks the program, for example because an import that it uses is gone. */
const NO_PROGRAM = /ReferenceError|SyntaxError/;

/** @returns the mutations that were found, by name */
export async function plantAll(
  runners: readonly Runner[],
  { mutations, ...options }: PlantOptions,
  told: (mutation: Mutation, found: Found | undefined) => void = () => {},
): Promise<ReadonlyMap<string, Found>> {
  const found = new Map<string, Found>();
  const queue = inOrder(mutations);
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

/** Those with other migrations come last: after each of them, the next needs a new schema. */
function inOrder(mutations: readonly Mutation[]): Mutation[] {
  const migrates = ({ edits }: Mutation) => edits.some(({ file }) => file.startsWith(`${MIGRATIONS}/`));
  return [...mutations].sort((one, other) => Number(migrates(one)) - Number(migrates(other)));
}

async function plant(
  runner: Runner,
  mutation: Mutation,
  {
    first,
    count,
    conditions = mutation.conditions,
    known = {},
    everySeed = false,
  }: Omit<PlantOptions, 'mutations'>,
): Promise<Found | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-mutation-'));
  try {
    const session = await bundleInto(folder, mutation);
    let found: Found | undefined;
    let tried = 0;
    for (const seed of seedsToTry(known[mutation.name], first, count)) {
      if (found && !everySeed) break;
      const { violation, cpuMs } = await runner.run({ session, seed, conditions });
      tried++;
      if (violation !== undefined && NO_PROGRAM.test(violation))
        throw new Error(`the planted bug "${mutation.name}" no longer fits the source: ${violation}`);
      const seeds = (found?.seeds ?? 0) + (violation === undefined ? 0 : 1);
      if (violation !== undefined && !(found && found.cpuMs <= cpuMs))
        found = { seed, cpuMs, violation, seeds, tried };
      else if (found) found = { ...found, seeds, tried };
    }
    return found;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function* seedsToTry(known: number | undefined, first: number, count: number): Iterable<number> {
  if (known !== undefined) yield known;
  for (let seed = first; seed < first + count; seed++) yield seed;
}

/** @returns the path of the bundle's session module */
async function bundleInto(folder: string, mutation: Mutation): Promise<string> {
  const edited = editedTexts(mutation);
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const assets of ASSETS) {
    const copy = join(folder, assets);
    const texts = [...edited].filter(([file]) => file.startsWith(`${assets}/`));
    mkdirSync(dirname(copy), { recursive: true });
    if (texts.length === 0) symlinkSync(join(ROOT, assets), copy);
    else cpSync(join(ROOT, assets), copy, { recursive: true });
    for (const [file, text] of texts) writeFileSync(join(folder, file), text);
  }
  // The first build starts esbuild, at once, with the environment of this moment. Other programs keep theirs.
  const { GOGC } = process.env;
  process.env.GOGC ??= LESS_COLLECTION;
  const built = build({
    entryPoints: [SESSION],
    outbase: ROOT,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    // The session sets the clock before it imports the product. Without splitting, packages would be loaded earlier.
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    keepNames: true,
    logLevel: 'error',
    plugins: [sourceWith(edited, folder)],
  });
  if (GOGC === undefined) delete process.env.GOGC;
  await built;
  return join(folder, relative(ROOT, SESSION).replace(/ts$/, 'mjs'));
}

/**
 * Loads edited files, and gives each file the URL that it would have in a copy of the source in this folder. esbuild reads all others
 * itself, because it asks a plugin in another process.
 */
function sourceWith(edited: ReadonlyMap<string, string>, folder: string): Plugin {
  const files = [...new Set([...edited.keys(), ...filesWithOwnUrl()])].filter((file) => file.endsWith('.ts'));
  const filter = new RegExp(`/(${files.map((file) => file.replaceAll('.', '\\.')).join('|')})$`);
  return {
    name: 'planted bug',
    setup({ onLoad }) {
      onLoad({ filter }, ({ path }) => {
        const file = relative(ROOT, path);
        const text = edited.get(file) ?? readFileSync(path, 'utf8');
        const url = JSON.stringify(pathToFileURL(join(folder, file)).href);
        return { contents: text.replaceAll(OWN_URL, () => url), loader: 'ts' };
      });
    },
  };
}

let withOwnUrl: readonly string[] | undefined;

function filesWithOwnUrl(): readonly string[] {
  withOwnUrl ??= SOURCES.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .map((file) => join(folder, file))
      .filter((file) => file.endsWith('.ts') && readFileSync(join(ROOT, file), 'utf8').includes(OWN_URL)),
  );
  return withOwnUrl;
}

/** The new text of each file that the mutation changes. @throws if it does not match the source */
function editedTexts({ name, edits }: Mutation): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const text = texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8');
    if (text.split(find).length !== 2)
      throw new Error(
        `mutation "${name}" is out of date: ${file} does not hold ${JSON.stringify(find)} once`,
      );
    texts.set(
      file,
      text.replace(find, () => replace),
    );
  }
  return texts;
}
