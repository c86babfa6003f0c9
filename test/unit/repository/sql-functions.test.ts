/** Whoever names a migration as the home of a function, to read it or to plant a bug in it, means the one that made it last. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MIGRATIONS = 'src/postgres/migrations';
const NAMED_IN = ['src', 'test/sim', 'docs', 'ARCHITECTURE.md'];

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

function filesBelow(path: string): string[] {
  if (/\.\w+$/.test(path)) return [path];
  const found = readdirSync(join(ROOT, path), { recursive: true, encoding: 'utf8' });
  return found.filter((name) => /\.(ts|md)$/.test(name)).map((name) => join(path, name));
}

test('functions are looked for where they are now', () => {
  const home = new Map<string, string>();
  const outdated = new Map<string, string>();
  for (const file of readdirSync(join(ROOT, MIGRATIONS)).sort()) {
    for (const [, name] of read(join(MIGRATIONS, file)).matchAll(
      /^CREATE (?:OR REPLACE )?FUNCTION (\w+)/gm,
    )) {
      const before = home.get(name!);
      if (before) outdated.set(before, `${name} is in ${file} now`);
      home.set(name!, file);
    }
  }
  expect(home.size).toBeGreaterThan(0);
  const wrong = NAMED_IN.flatMap(filesBelow).flatMap((path) =>
    [...read(path).matchAll(/migrations\/(\d{3}-[\w-]+\.sql)/g)]
      .filter(([, file]) => outdated.has(file!))
      .map(([, file]) => `${path} names ${file}: ${outdated.get(file!)}`),
  );
  expect(wrong).toEqual([]);
});
