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

interface Definition {
  readonly file: string;
  readonly name: string;
  readonly body: string;
}

/** All definitions of functions, in the order in which they are made. */
const definitions: Definition[] = readdirSync(join(ROOT, MIGRATIONS))
  .sort()
  .flatMap((file) =>
    [...read(join(MIGRATIONS, file)).matchAll(/^CREATE (?:OR REPLACE )?FUNCTION (\w+)[\s\S]*?^\$\$;$/gm)].map(
      ([body, name]) => ({ file, name: name!, body }),
    ),
  );
const home = new Map(definitions.map(({ name, file }) => [name, file]));
const isOld = ({ name, file }: Definition) => home.get(name) !== file;

test('a function is found in its newest migration', () => {
  expect(home.size).toBeGreaterThan(0);
  const wrong = NAMED_IN.flatMap(filesBelow).flatMap((path) =>
    [...read(path).matchAll(/migrations\/(\d{3}-[\w-]+\.sql)/g)].flatMap(([, file]) => {
      const ofFile = definitions.filter((one) => one.file === file);
      const isOutdated = ofFile.length > 0 && ofFile.every(isOld);
      return isOutdated ? [`${path} names ${file}: ${namesOf(ofFile)} elsewhere now`] : [];
    }),
  );
  expect(wrong).toEqual([]);
});

test('bugs are planted into functions that are used', () => {
  const edits = [
    ...read('test/sim/planted/mutations.ts').matchAll(
      /edit\(\s*'postgres\/migrations\/([\w.-]+)',\s*(['"])(.*?)\2,/g,
    ),
  ];
  expect(edits.length).toBeGreaterThan(0);
  const wrong = edits.flatMap(([, file, , text]) => {
    const hit = definitions.filter((one) => one.file === file && one.body.includes(text!) && isOld(one));
    return hit.length > 0 ? [`${text} in ${file}: ${namesOf(hit)} elsewhere now`] : [];
  });
  expect(wrong).toEqual([]);
});

const namesOf = (found: readonly Definition[]) => found.map(({ name }) => `${name} is`).join(', ');
