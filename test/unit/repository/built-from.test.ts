/** Whether `npm start` must build (scripts/built-from.mjs). */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { beginBuild, isBuilt } from '../../../scripts/built-from.mjs';

const SOURCES = ['src', 'package.json'];
let root = '';

function put(file: string): void {
  mkdirSync(join(root, file, '..'), { recursive: true });
  writeFileSync(join(root, file), `a text for ${file}`);
}

function build(): void {
  const end = beginBuild(root, SOURCES);
  put('dist/main.js');
  end();
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'stockade-build-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const file of ['src/main.ts', 'src/lib/part.ts', 'package.json']) put(file);
});

test('a source that was built need not be built again', () => {
  expect(isBuilt(root, SOURCES)).toBe(false);
  build();
  expect(isBuilt(root, SOURCES)).toBe(true);
  expect(readdirSync(join(root, 'dist')).sort()).toEqual(['built-from.cache', 'main.js']);
});

test.each<[string, () => void]>([
  ['a source is changed', () => writeFileSync(join(root, 'src/lib/part.ts'), 'another text')],
  ['a source is added', () => put('src/lib/other.ts')],
  ['a source is removed', () => rmSync(join(root, 'src/lib/part.ts'))],
  ['a package may be another', () => writeFileSync(join(root, 'package.json'), '{}')],
  ['a file is missing in dist/', () => rmSync(join(root, 'dist/main.js'))],
  ['dist/ is missing', () => rmSync(join(root, 'dist'), { recursive: true })],
  ['a later build was broken off', () => void beginBuild(root, SOURCES)],
])('a build is needed if %s', (_, happens) => {
  build();
  happens();
  expect(isBuilt(root, SOURCES)).toBe(false);
});

test('a source that is changed during the build needs another build', () => {
  const end = beginBuild(root, SOURCES);
  writeFileSync(join(root, 'src/main.ts'), 'another text');
  end();
  expect(isBuilt(root, SOURCES)).toBe(false);
});

test('a build that another one has disturbed fails', () => {
  const end = beginBuild(root, SOURCES);
  rmSync(join(root, 'dist'), { recursive: true });
  put('dist/main.js');
  expect(end).toThrow('another build has emptied dist/');
  expect(isBuilt(root, SOURCES)).toBe(false);
});

test('a link that leads nowhere, such as an editor makes beside a changed file, is no source', () => {
  build();
  symlinkSync('somebody@somewhere.1234', join(root, 'src/.#main.ts'));
  expect(isBuilt(root, SOURCES)).toBe(true);
});
