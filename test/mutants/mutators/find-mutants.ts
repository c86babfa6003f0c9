/** Finds all mutants of all kinds, from which a sample is drawn. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Change, type Mutant, mutantsOf } from '../mutant.ts';
import { luaChanges } from './lua-mutator.ts';
import { sqlChanges } from './sql-mutator.ts';
import { instrument } from './typescript.ts';

export const MUTATED_FOLDERS = [
  'admission',
  'engine',
  'events',
  'lib',
  'locks',
  'orders',
  'postgres',
  'queue',
  'rebuild',
  'redis',
  'sales',
  'shop',
  'sync',
  'verify',
].map((folder) => `src/${folder}`);
const MIGRATIONS = 'src/postgres/migrations/';
/** The module with the switches in the copy, without its extension. */
export const SWITCH_MODULE = 'src/mutant-switch';

export interface Population {
  readonly mutants: readonly Mutant[];
  /** By the path of the file: the file with all its TypeScript mutants, each behind its switch. */
  readonly instrumented: ReadonlyMap<string, string>;
}

/** @param root ends in a slash; `folders` are relative to it */
export async function findMutants(
  root: string,
  folders: readonly string[] = MUTATED_FOLDERS,
): Promise<Population> {
  const instrumented = new Map<string, string>();
  const mutants: Mutant[] = [];
  const read = (file: string) => readFileSync(join(root, file), 'utf8');
  const files = filesIn(root, folders);
  for (const file of files) {
    const text = read(file);
    if (file.endsWith('.lua')) mutants.push(...mutantsOf('lua', file, text, luaChanges(text)));
    if (!file.endsWith('.ts')) continue;
    const up = '../'.repeat(file.split('/').length - 2) || './';
    const found = await instrument(file, text, `${up}mutant-switch.ts`);
    instrumented.set(file, found.text);
    mutants.push(...mutantsOf('ts', file, text, found.changes));
    const inTexts = found.sql.flatMap((literal) =>
      sqlChanges(text.slice(literal.start + 1, literal.end - 1)).map((change) => ({
        ...shifted(change, literal.start + 1),
        switch: literal.switch,
        literal: { start: literal.start, end: literal.end },
      })),
    );
    mutants.push(...mutantsOf('sql', file, text, inTexts));
  }
  const migrations = files.filter((file) => file.startsWith(MIGRATIONS) && file.endsWith('.sql'));
  const texts = new Map(migrations.map((file) => [file, read(file)]));
  for (const [file, changes] of migrationChanges(texts))
    mutants.push(...mutantsOf('sql', file, texts.get(file)!, changes));
  return { mutants, instrumented };
}

function filesIn(root: string, folders: readonly string[]): string[] {
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(root.length)),
    )
    .sort();
}

const shifted = (change: Change, by: number): Change => ({
  ...change,
  start: change.start + by,
  end: change.end + by,
});

const FUNCTION = /CREATE (?:OR REPLACE )?FUNCTION (\w+)\([\s\S]*?\$\$([\s\S]*?)\$\$/g;
const UNIQUE_INDEX = /CREATE (UNIQUE )INDEX \w+ ON (\w+ \([^)]*\)(?: WHERE [^;]+)?)/g;

/**
 * The part of the migrations that is in force: the last definition of each function, and the unique indexes. `texts` must be in
 * the order in which they are applied.
 */
export function migrationChanges(texts: ReadonlyMap<string, string>): Map<string, Change[]> {
  const inForce = new Map<string, { file: string; start: number; body: string }>();
  const changes = new Map<string, Change[]>([...texts.keys()].map((file) => [file, []]));
  for (const [file, text] of texts) {
    for (const found of text.matchAll(FUNCTION)) {
      const body = found[2]!;
      inForce.set(found[1]!, {
        file,
        start: found.index + found[0].length - '$$'.length - body.length,
        body,
      });
    }
    for (const found of text.matchAll(UNIQUE_INDEX)) {
      const start = found.index + 'CREATE '.length;
      const unique = { mutator: 'UniqueDropped', start, end: start + found[1]!.length, replacement: '' };
      const rest = found.index + found[0].length - found[2]!.length;
      changes.get(file)!.push(unique, ...sqlChanges(found[2]!).map((change) => shifted(change, rest)));
    }
  }
  for (const { file, start, body } of inForce.values())
    changes.get(file)!.push(...sqlChanges(body).map((change) => shifted(change, start)));
  return changes;
}

/** The name of the function that contains this position of a migration. */
export function functionAt(text: string, offset: number): string | undefined {
  for (const found of text.matchAll(FUNCTION))
    if (found.index <= offset && offset < found.index + found[0].length) return found[1];
  return undefined;
}
