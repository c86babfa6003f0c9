/**
 * Which room of src/ may import from which, and which packages are whose: the table of ARCHITECTURE.md, checked.
 *
 * The engine knows neither HTTP nor SQL, sync reads the order logs and never takes stock, and only node and cli put the
 * rooms together.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** Each room's own files are always allowed. A folder of two names is a room within a room. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  engine: [],
  'engine/memory': ['engine'],
  'engine/redis': ['engine'],
  'engine/lock': ['engine', 'engine/redis'],
  'engine/cluster': ['engine', 'engine/redis'],
  admission: ['engine'],
  config: ['engine', 'admission'],
  sync: ['engine'],
  http: ['engine', 'admission', 'sync'],
  node: [
    'engine',
    'engine/memory',
    'engine/redis',
    'engine/cluster',
    'engine/lock',
    'admission',
    'config',
    'sync',
    'http',
  ],
  cli: ['engine', 'config', 'sync', 'node'],
  // In nobody's list: what it shows to be wrong can't find its way into a node.
  catalogue: ['engine', 'engine/redis', 'node'],
};

/** Packages that reach the world outside, and the rooms that may use them: what only looks is cli/doctor. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  ioredis: ['engine/redis', 'engine/cluster', 'engine/lock', 'cli/doctor', 'catalogue'],
  knex: ['sync'],
  pg: ['sync', 'cli/doctor', 'catalogue'],
  '@electric-sql/pglite': ['node', 'cli/doctor'],
  '@electric-sql/pglite-socket': ['node', 'cli/doctor'],
  'uWebSockets.js': ['http', 'cli/doctor'],
  jose: ['http'],
  undici: ['cli', 'node'],
  commander: ['cli'],
};

interface Import {
  /** Relative to src/, with forward slashes. */
  readonly file: string;
  /** As it is written. */
  readonly from: string;
}

const FORMS = [
  // import … from, export … from: names, braces, stars and commas may stand in between, over any number of lines.
  /^(?:import|export)\b[\w\s{},*]*?\bfrom\s*'([^']+)'/gm,
  /^import\s*'([^']+)'/gm,
  /\bimport\(\s*'([^']+)'\s*\)/g,
  /\bimport\.meta\.resolve\(\s*'([^']+)'\s*\)/g,
  /\bnew URL\(\s*'(\.[^']+)',\s*import\.meta\.url\s*\)/g,
];

function importsIn(text: string): string[] {
  return FORMS.flatMap((form) => [...text.matchAll(form)].map((match) => match[1]!));
}

function sourceFiles(): string[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => name.split(sep).join('/'));
}

const files = sourceFiles();
const imports: Import[] = files.flatMap((file) =>
  importsIn(readFileSync(join(SRC, file), 'utf8')).map((from) => ({ file, from })),
);

/** The room of a path below src/; `undefined` for what stands in src/ itself and puts rooms together. */
function roomOf(path: string): string | undefined {
  const [first, second] = path.split('/');
  const inner = `${first}/${second}`;
  return inner in ROOMS ? inner : path.includes('/') ? first : undefined;
}

function targetOf({ file, from }: Import): string {
  return relative(SRC, join(SRC, dirname(file), from))
    .split(sep)
    .join('/');
}

function packageOf(from: string): string {
  return from
    .split('/')
    .slice(0, from.startsWith('@') ? 2 : 1)
    .join('/');
}

function isWithin(file: string, room: string): boolean {
  return file.startsWith(`${room}/`);
}

describe('imports', () => {
  const local = imports.filter(({ from }) => from.startsWith('.'));
  const foreign = imports.filter(({ from }) => !from.startsWith('.') && !from.startsWith('node:'));

  test('every room is in the table', () => {
    const rooms = new Set(files.flatMap((file) => roomOf(file) ?? []));
    expect([...rooms].sort()).toEqual(Object.keys(ROOMS).sort());
  });

  test('point from room to room as the table says', () => {
    const wrong = local.flatMap((found) => {
      const [from, to] = [roomOf(found.file), roomOf(targetOf(found))];
      const allowed = from === undefined || from === to || ROOMS[from]?.includes(to ?? '');
      return allowed ? [] : [`${found.file} (${from}) imports ${targetOf(found)} (${to ?? 'src'})`];
    });
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(OWNERS))('%s is used by %s alone', (name, owners) => {
    const users = foreign.filter(({ from }) => packageOf(from) === name).map(({ file }) => file);
    expect(users).not.toEqual([]);
    expect(users.filter((file) => !owners.some((room) => isWithin(file, room)))).toEqual([]);
  });

  test('name packages that package.json depends on, and all of those are named', () => {
    const manifest = JSON.parse(readFileSync(join(SRC, '..', 'package.json'), 'utf8'));
    const used = new Set(foreign.map(({ from }) => packageOf(from)));
    expect([...used].sort()).toEqual(Object.keys(manifest.dependencies).sort());
  });
});

test('sync never takes stock', () => {
  const takes = files
    .filter((file) => isWithin(file, 'sync'))
    .filter((file) => /\.takes\b|\bTakeStore\b/.test(readFileSync(join(SRC, file), 'utf8')));
  expect(takes).toEqual([]);
});

test('imports are found in every form', () => {
  const text = `
import 'one';
import two, { type Three } from 'two';
import type {
  Four,
  Five,
} from './three.ts';
export * from './four.ts';
export { six } from './five.ts';
type Seven = typeof import('six');
const eight = await import('./seven.ts');
const nine = new URL('./eight/', import.meta.url);
import.meta.resolve('@nine/ten');
export const ten = 'import eleven from "twelve"';
// import thirteen from 'fourteen';
`;
  expect(importsIn(text).sort()).toEqual(
    [
      'one',
      'two',
      './three.ts',
      './four.ts',
      './five.ts',
      'six',
      './seven.ts',
      './eight/',
      '@nine/ten',
    ].sort(),
  );
});
