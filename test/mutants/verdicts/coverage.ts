/**
 * Finds out which tests reach which mutants, by a dry run: every test file runs alone in the instrumented copy, without a mutant.
 *
 * The result of a file is cached in the machine's folder for temporary files, for all copies of the repository. It is valid as
 * long as the file, its imports from test/, and the mutated files that it has loaded are unchanged. Other files of src/ are not
 * compared: if one of them starts to call more of the mutated files, the cache misses that until those files change.
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Sighting } from '../copies/mutant-switch.ts';
import type { Stores } from '../copies/stores.ts';
import { needsStores, type Outcome, runTests, SIMULATION, testFiles } from '../copies/suites.ts';
import type { Tree } from '../copies/trees.ts';

const CACHE = join(tmpdir(), 'stockade-mutants-reach');
const DRY_LIMIT_MS = 400_000;

/** The known reach of a test file, or of the simulation. */
export interface Reach {
  readonly file: string;
  readonly passed: boolean;
  readonly ms: number;
  readonly seen: Sighting;
}

interface Kept extends Reach {
  /** Hashes of the loaded files, by their paths. */
  readonly sources: Readonly<Record<string, string>>;
}

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** @param onRun called with each file that is run, because the cache does not have it */
export async function reachOfTests(
  root: string,
  tree: Tree,
  stores: Stores,
  onRun: (file: string, number: number, count: number, outcome: Outcome) => void,
): Promise<Reach[]> {
  mkdirSync(CACHE, { recursive: true });
  const files = testFiles(root);
  const reaches = new Map(files.map((file) => [file, kept(root, file)]));
  const unknown = files.filter((file) => !reaches.get(file));
  for (const [i, file] of unknown.entries()) {
    const { outcome, seen } = await dryRun(tree, file, stores);
    onRun(file, i + 1, unknown.length, outcome);
    const reach = { file, passed: outcome.passed, ms: Math.round(outcome.ms), seen };
    if (reach.passed) keep(root, reach);
    reaches.set(file, reach);
  }
  return [...reaches.values()].map((reach) => reach!);
}

async function dryRun(
  tree: Tree,
  file: string,
  stores: Stores,
): Promise<{ outcome: Outcome; seen: Sighting }> {
  const record = mkdtempSync(join(tmpdir(), 'stockade-sightings-'));
  try {
    tree.switchTo({ record });
    const urls = needsStores(file) ? await stores.fresh() : undefined;
    const outcome = await runTests(tree.root, [file], DRY_LIMIT_MS, urls);
    return { outcome, seen: sightings(record) };
  } finally {
    tree.restore();
    rmSync(record, { recursive: true, force: true });
  }
}

function sightings(folder: string): Sighting {
  const all = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Sighting);
  const union = (of: (one: Sighting) => readonly string[]) => [...new Set(all.flatMap(of))].sort();
  return {
    switches: union(({ switches }) => switches),
    files: union(({ files }) => files),
    scripts: union(({ scripts }) => scripts),
    functions: union(({ functions }) => functions),
  };
}

const cachePath = (root: string, file: string) =>
  join(
    CACHE,
    `${hashOf([...closure(root, file)].map((path) => readFileSync(join(root, path))).join('\n'))}.json`,
  );

function keep(root: string, reach: Reach): void {
  const sources = Object.fromEntries(
    sourcesOf(root, reach.seen).map((path) => [path, hashOf(textAt(root, path))]),
  );
  writeFileSync(cachePath(root, reach.file), JSON.stringify({ ...reach, sources } satisfies Kept));
}

function kept(root: string, file: string): Reach | undefined {
  const path = cachePath(root, file);
  if (!existsSync(path)) return undefined;
  const reach = JSON.parse(readFileSync(path, 'utf8')) as Kept;
  const isSame = Object.entries(reach.sources).every(([path, hash]) => hashOf(textAt(root, path)) === hash);
  return isSame && reach.file === file ? reach : undefined;
}

/** A process that sends scripts depends on all script files, because a part of a script has no name in Redis. */
function sourcesOf(root: string, { files, scripts, functions }: Sighting): string[] {
  const below = (folder: string) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.includes('.'))
      .map((name) => `${folder}/${name}`);
  return [
    ...files,
    ...(scripts.length === 0 ? [] : [...below('src/engine/redis/lua'), ...below('src/locks/lua')]),
    ...(functions.length === 0 ? [] : below('src/postgres/migrations')),
  ];
}

function textAt(root: string, path: string): string {
  const whole = join(root, path);
  return existsSync(whole) ? readFileSync(whole, 'utf8') : '';
}

/** The file and its imports outside src/. For the simulation, its whole folder, because it loads files at run time. */
function closure(root: string, file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file) || !existsSync(join(root, file)) || !file.startsWith('test/')) return seen;
  seen.add(file);
  if (file === SIMULATION)
    for (const name of readdirSync(join(root, 'test/sim'), { recursive: true, encoding: 'utf8' }))
      if (name.endsWith('.ts')) seen.add(`test/sim/${name}`);
  for (const [, path] of readFileSync(join(root, file), 'utf8').matchAll(/from '(\.[^']+)'/g))
    closure(root, join(dirname(file), path!), seen);
  return seen;
}
