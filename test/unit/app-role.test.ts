/** The list of rights names what the migrations make: who adds a table there gives serving the rights on it, or none. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FUNCTIONS, TABLE_RIGHTS } from '../../src/sync/app-role.ts';

const folder = new URL('../../src/sync/migrations/', import.meta.url);
const files = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8'));
const namesIn = (pattern: RegExp) =>
  [...new Set(files.flatMap((sql) => [...sql.matchAll(pattern)].map((match) => match[1]!)))].sort();

test('every table of the migrations is in the list of rights, and nothing else', () => {
  const made = namesIn(/^CREATE TABLE (?:IF NOT EXISTS )?(\w+)/gm);
  expect(Object.keys(TABLE_RIGHTS).sort()).toEqual([...made, 'stockade_migrations'].sort());
});

test('every function of the migrations is in the list of rights, and nothing else', () => {
  expect([...FUNCTIONS].sort()).toEqual(namesIn(/^CREATE (?:OR REPLACE )?FUNCTION (\w+)/gm));
});

test('no function of the migrations runs with other rights than its caller’s', () => {
  for (const sql of files) expect(sql).not.toMatch(/SECURITY\s+DEFINER/i);
});
