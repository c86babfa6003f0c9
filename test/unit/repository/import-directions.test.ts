/**
 * Which room of src/ may import from which, and which packages each may use. A room is a folder.
 *
 * The engine knows neither HTTP nor SQL, sync reads the order logs and never takes stock, and only node and cli put the
 * rooms together. What must stay true of the catalogue is simpler: nothing in src/ imports it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../../../src/', import.meta.url));

/**
 * From the ground up: a room may import from those that its line names, each of which stands above it in this table. A
 * room's own files are always allowed.
 */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  'engine/contract': [],
  engine: ['engine/contract'],
  lib: ['engine'],
  admission: ['engine', 'lib'],
  'queue/draw': ['engine'],
  redis: ['engine', 'lib'],
  'engine/sale': ['engine'],
  'engine/board': ['engine', 'lib'],
  'engine/purchase': ['engine', 'lib', 'engine/sale', 'engine/board'],
  operations: ['engine', 'lib', 'engine/sale', 'engine/purchase'],
  postgres: ['engine', 'lib'],
  'postgres/changes': ['engine', 'lib', 'postgres'],
  'http/server/replies': [],
  'http/server': ['engine', 'lib', 'admission', 'http/server/replies'],
  'http/server/uws': ['http/server/replies', 'http/server'],
  'http/description': ['http/server/replies', 'http/server'],
  'http/server/node-http': ['admission', 'http/server/replies', 'http/server'],
  'sync/apply': ['engine', 'lib', 'postgres'],
  locks: ['engine', 'lib', 'redis'],
  'engine/memory': ['engine', 'lib', 'engine/sale'],
  'http/identity': ['engine', 'lib', 'http/server/replies', 'http/server'],
  'http/orders': ['engine/sale', 'operations', 'http/server/replies'],
  events: ['engine', 'engine/sale', 'lib', 'operations', 'postgres'],
  'config/values': ['redis'],
  'config/settings': ['engine', 'admission', 'config/values'],
  config: ['engine', 'admission', 'config/values', 'config/settings'],
  'node/process': ['engine', 'lib', 'http/server', 'http/server/uws', 'http/server/node-http', 'config'],
  traces: ['engine', 'lib', 'engine/sale', 'config', 'node/process'],
  'client/generated': [],
  client: ['client/generated'],
  'operations/console': ['engine', 'operations'],
  'operations/queue': ['engine', 'lib', 'engine/sale', 'operations'],
  sales: [
    'engine',
    'queue/draw',
    'engine/sale',
    'operations',
    'postgres',
    'postgres/changes',
    'operations/console',
  ],
  orders: ['engine', 'lib', 'engine/sale', 'operations', 'postgres', 'postgres/changes', 'sales'],
  queue: [
    'engine',
    'queue/draw',
    'engine/sale',
    'operations',
    'operations/queue',
    'postgres',
    'postgres/changes',
    'orders',
  ],
  'queue/head': ['engine', 'engine/sale', 'lib', 'postgres', 'events', 'sales', 'queue'],
  'queue/buyers': ['engine', 'lib', 'admission', 'queue/draw', 'postgres', 'queue'],
  'queue/operators': [
    'engine',
    'engine/sale',
    'queue/draw',
    'operations',
    'operations/queue',
    'postgres',
    'postgres/changes',
    'sales',
    'queue',
  ],
  rebuild: [
    'engine',
    'lib',
    'engine/sale',
    'engine/purchase',
    'operations',
    'postgres',
    'sync/apply',
    'sales',
    'queue',
  ],
  verify: [
    'queue',
    'engine',
    'lib',
    'redis',
    'engine/sale',
    'operations',
    'operations/queue',
    'postgres',
    'sync/apply',
    'sales',
    'orders',
    'rebuild',
  ],
  'http/streams': ['lib', 'http/server/replies'],
  'http/public/place': [
    'engine',
    'lib',
    'admission',
    'http/server/replies',
    'http/server',
    'http/identity',
    'queue/buyers',
    'http/streams',
  ],
  'http/public': [
    'engine',
    'lib',
    'admission',
    'engine/sale',
    'operations',
    'http/server/replies',
    'http/server',
    'http/description',
    'http/identity',
    'http/orders',
    'orders',
    'queue',
    'queue/buyers',
    'http/streams',
    'http/public/place',
  ],
  'http/ops': [
    'engine',
    'lib',
    'engine/sale',
    'operations',
    'http/server/replies',
    'http/server',
    'http/description',
    'http/identity',
    'http/orders',
    'operations/console',
    'operations/queue',
  ],
  deletion: ['engine', 'lib', 'engine/sale', 'operations', 'postgres', 'sync/apply', 'sales', 'rebuild'],
  shop: [
    'engine',
    'lib',
    'engine/sale',
    'operations',
    'postgres',
    'sales',
    'orders',
    'rebuild',
    'verify',
    'deletion',
  ],
  'sync/held': ['engine', 'lib', 'postgres', 'sync/apply', 'sales', 'orders', 'rebuild'],
  'sync/reconciler': [
    'engine',
    'lib',
    'postgres',
    'sync/apply',
    'sales',
    'orders',
    'rebuild',
    'deletion',
    'sync/held',
  ],
  sync: ['engine', 'lib', 'engine/sale', 'sync/apply', 'sales', 'orders', 'sync/held', 'sync/reconciler'],
  'engine/redis/protocol': ['engine', 'lib', 'redis', 'engine/sale', 'locks'],
  'engine/redis/take': ['engine', 'lib', 'redis', 'engine/sale', 'engine/redis/protocol'],
  'engine/redis': ['engine', 'lib', 'redis', 'engine/sale', 'engine/redis/protocol', 'engine/redis/take'],
  'engine/cluster': [
    'engine',
    'lib',
    'redis',
    'engine/sale',
    'engine/redis/protocol',
    'engine/redis/take',
    'engine/redis',
  ],
  'engine/locked': ['engine', 'lib', 'locks', 'engine/redis/protocol', 'engine/cluster'],
  'node/worker': [
    'engine',
    'lib',
    'admission',
    'engine/sale',
    'engine/board',
    'engine/purchase',
    'postgres',
    'http/server',
    'http/identity',
    'config/values',
    'config',
    'node/process',
    'traces',
    'orders',
    'queue',
    'queue/buyers',
    'http/streams',
    'http/public',
    'engine/cluster',
    'engine/locked',
  ],
  'node/stores': [
    'engine',
    'lib',
    'redis',
    'postgres',
    'engine/memory',
    'config/values',
    'config',
    'node/process',
    'shop',
    'engine/cluster',
  ],
  'node/observability': [
    'engine',
    'lib',
    'engine/board',
    'operations',
    'http/server',
    'events',
    'node/process',
    'traces',
    'orders',
    'queue/head',
    'rebuild',
    'deletion',
    'sync/held',
    'node/worker',
    'node/stores',
  ],
  'node/operations': [
    'engine',
    'lib',
    'engine/sale',
    'operations',
    'postgres',
    'events',
    'config/values',
    'config',
    'node/process',
    'orders',
    'http/ops',
    'operations/queue',
    'queue/operators',
    'shop',
    'node/stores',
  ],
  'node/console': [
    'engine',
    'lib',
    'operations',
    'postgres',
    'http/server',
    'operations/console',
    'sales',
    'node/worker',
  ],
  node: [
    'engine',
    'lib',
    'engine/board',
    'engine/purchase',
    'operations',
    'postgres',
    'events',
    'config/values',
    'config',
    'node/process',
    'traces',
    'operations/console',
    'sales',
    'orders',
    'queue/head',
    'rebuild',
    'deletion',
    'shop',
    'sync',
    'node/worker',
    'node/stores',
    'node/observability',
    'node/operations',
    'node/console',
  ],
  'cli/terminal': ['engine', 'lib', 'operations', 'config/values', 'config', 'node'],
  'cli/command': [
    'engine',
    'lib',
    'engine/sale',
    'operations',
    'operations/console',
    'operations/queue',
    'config/values',
    'config',
    'node/process',
    'node',
    'cli/terminal',
  ],
  'cli/completion': ['cli/terminal', 'cli/command'],
  'cli/demo/queue': ['engine', 'lib', 'client', 'config/values', 'node', 'cli/terminal', 'cli/command'],
  'cli/demo': [
    'engine',
    'lib',
    'operations',
    'config/values',
    'config',
    'node',
    'cli/terminal',
    'cli/command',
    'cli/demo/queue',
  ],
  'cli/doctor': [
    'redis',
    'postgres',
    'config/values',
    'config',
    'node/process',
    'cli/terminal',
    'cli/command',
  ],
  'cli/events': ['operations', 'cli/terminal', 'cli/command'],
  'cli/order': ['engine', 'lib', 'operations', 'cli/terminal', 'cli/command'],
  'cli/queue': ['operations/queue', 'queue/draw', 'cli/terminal', 'cli/command'],
  'cli/sale': [
    'engine',
    'lib',
    'engine/sale',
    'operations',
    'operations/queue',
    'cli/terminal',
    'cli/command',
    'cli/order',
    'cli/queue',
  ],
  'cli/rehearse/crowd': ['engine', 'lib', 'config/values', 'cli/command'],
  'cli/rehearse/stage': [
    'engine',
    'lib',
    'engine/sale',
    'operations',
    'config/values',
    'config',
    'node/process',
    'node',
    'cli/terminal',
    'cli/doctor',
    'cli/rehearse/crowd',
  ],
  'cli/rehearse/report': [
    'operations',
    'cli/terminal',
    'cli/doctor',
    'cli/rehearse/crowd',
    'cli/rehearse/stage',
  ],
  'cli/rehearse': [
    'engine',
    'engine/sale',
    'config/values',
    'config',
    'cli/terminal',
    'cli/command',
    'cli/doctor',
    'cli/rehearse/crowd',
    'cli/rehearse/stage',
    'cli/rehearse/report',
  ],
  'cli/top': ['lib', 'operations', 'operations/console', 'cli/terminal', 'cli/command'],
  cli: [
    'engine',
    'lib',
    'operations',
    'config',
    'node/process',
    'shop',
    'node',
    'cli/terminal',
    'cli/command',
    'cli/completion',
    'cli/demo',
    'cli/doctor',
    'cli/events',
    'cli/order',
    'cli/queue',
    'cli/rehearse',
    'cli/sale',
    'cli/top',
  ],
  embed: [
    'admission',
    'engine',
    'engine/purchase',
    'lib',
    'engine/sale',
    'operations',
    'events',
    'queue',
    'queue/buyers',
    'orders',
    'config',
    'node/process',
    'node/worker',
    'node/stores',
    'node/observability',
    'node/operations',
    'node',
  ],
  '.': ['engine', 'redis', 'operations', 'locks', 'events', 'config', 'shop', 'embed'],
};

/** Packages that reach the world outside, and the rooms that may use them: what only looks is cli/doctor. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  ioredis: [
    'redis',
    'engine/redis/protocol',
    'engine/redis/take',
    'engine/redis',
    'engine/cluster',
    'locks',
    'cli/doctor',
  ],
  // Types of transactions, in what is done in one.
  knex: ['postgres', 'orders', 'queue', 'rebuild', 'verify', 'deletion', 'sales', 'sync/apply'],
  pg: ['postgres', 'cli/doctor'],
  '@electric-sql/pglite': ['node', 'cli/doctor'],
  '@electric-sql/pglite-socket': ['node', 'cli/doctor'],
  // Routes don't know which of two servers speaks HTTP.
  'uWebSockets.js': ['http/server/uws'],
  jose: ['http'],
  undici: ['cli', 'node'],
  commander: ['cli'],
  '@opentelemetry/api': ['traces'],
  '@opentelemetry/core': ['traces'],
  '@opentelemetry/resources': ['traces'],
  '@opentelemetry/sdk-trace': ['traces'],
  '@opentelemetry/exporter-trace-otlp-http': ['traces'],
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

/** The room of a path below src/: its folder; scripts and migrations belong to the room around theirs. */
function roomOf(path: string): string {
  const folder = posix.dirname(path);
  return folder in ROOMS || folder === '.' ? folder : roomOf(folder);
}

function targetOf({ file, from }: Import): string {
  return relative(SRC, join(SRC, dirname(file), from))
    .split(sep)
    .join('/');
}

/** Takes away files that import none of the rest, until there is none: what is left is in a circle, or imports one. */
function leftAfterPeeling(imported: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const left = new Set(imported.keys());
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const file of left)
      if (![...imported.get(file)!].some((other) => left.has(other))) left.delete(file);
  }
  return [...left].sort();
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
    expect([...new Set(files.map((file) => posix.dirname(file)))].sort()).toEqual(Object.keys(ROOMS).sort());
  });

  test('point down: each room of the table names only rooms above it in the table', () => {
    const order = Object.keys(ROOMS);
    const wrong = order.flatMap((room, i) =>
      ROOMS[room]!.filter((other) => !order.slice(0, i).includes(other)).map(
        (other) => `${room} -> ${other}`,
      ),
    );
    expect(wrong).toEqual([]);
  });

  test('are used wherever the table allows them', () => {
    const used = new Set(local.map((found) => `${roomOf(found.file)} -> ${roomOf(targetOf(found))}`));
    const allowed = Object.entries(ROOMS).flatMap(([room, others]) =>
      others.map((other) => `${room} -> ${other}`),
    );
    expect(allowed.filter((arrow) => !used.has(arrow))).toEqual([]);
  });

  test('have no circle among files', () => {
    const imported = new Map(files.map((file) => [file, new Set<string>()]));
    for (const found of local)
      if (targetOf(found).endsWith('.ts')) imported.get(found.file)!.add(targetOf(found));
    expect(leftAfterPeeling(imported)).toEqual([]);
  });

  test('point from room to room as the table says', () => {
    const wrong = local.flatMap((found) => {
      const [from, to] = [roomOf(found.file), roomOf(targetOf(found))];
      const isAllowed = from === to || ROOMS[from]?.includes(to);
      return isAllowed ? [] : [`${found.file} imports ${targetOf(found)}`];
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

const TAKE_NO_STOCK = ['sync', 'rebuild', 'sales', 'verify', 'postgres', 'shop'];

test('sync, and what works beside it, never takes stock', () => {
  const takes = files
    .filter((file) => TAKE_NO_STOCK.some((room) => isWithin(file, room)))
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
