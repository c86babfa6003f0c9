/**
 * Links between pages, and from source files to pages: each target exists, with the heading that the link names, and so does each
 * path in code font. ARCHITECTURE.md names each folder of src/, and is short enough to be read in one go.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { anchorsOf, localLinksIn } from '../../support/pages/markdown.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SKIPPED = new Set(['node_modules', 'dist', 'coverage']);
const SOURCES = ['src', 'test', 'bench', 'catalogue', 'scripts', 'deploy'];

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith('.') || SKIPPED.has(entry.name)) return [];
    const path = posix.join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const files = filesBelow('');

/** The text of a page that is a target of links; `''` for a file without headings, `undefined` if it does not exist. */
type Find = (path: string) => string | undefined;

const find: Find = (path) => {
  if (!existsSync(join(ROOT, path))) return undefined;
  return path.endsWith('.md') && statSync(join(ROOT, path)).isFile() ? read(path) : '';
};

function deadLinks(page: string, text: string, find: Find): string[] {
  return localLinksIn(text).filter((target) => {
    const [path, anchor] = target.split('#') as [string, string?];
    const found = find(path === '' ? page : posix.join(dirname(page), path));
    return found === undefined || (anchor !== undefined && !anchorsOf(found).has(anchor));
  });
}

describe('a dead link is found', () => {
  const places: Record<string, string> = {
    'docs/there.md': '# Two words\n## Two words',
    'docs/picture.svg': '',
  };
  const dead = (text: string) =>
    deadLinks('docs/page.md', text, (path) => (path === 'docs/page.md' ? text : places[path]));

  test.each([
    ['to a file', '[a](missing.md)', ['missing.md']],
    ['to a folder too high', '[a](../there.md)', ['../there.md']],
    ['of a picture', '![a](missing.svg)', ['missing.svg']],
    ['to a heading', '[a](there.md#one-word)', ['there.md#one-word']],
    ['to a heading that is in code', '[a](#c)\n```\n# c\n```', ['#c']],
    ['beside sound ones', '[a](there.md), [b](x.md), [c](https://example.org/x)', ['x.md']],
  ])('%s', (_, text, expected) => expect(dead(text)).toEqual(expected));

  test.each([
    ['a file', '[a](there.md)'],
    ['a file by way of its folder', '[a](../docs/there.md)'],
    ['a picture', '![a](picture.svg)'],
    ['a heading', '[a](there.md#two-words)'],
    ['the second heading of a name', '[a](there.md#two-words-1)'],
    ['a heading of the same page', '# Here\n[a](#here)'],
    ['another machine', '[a](https://example.org/missing#x) [b](mailto:a@example.org)'],
    ['nothing, in code', '```\n[a](missing.md)\n```'],
  ])('and no link to %s', (_, text) => expect(dead(text)).toEqual([]));
});

describe.each(files.filter((path) => path.endsWith('.md')))('%s', (page) => {
  test('links to existing files and headings', () => {
    expect(deadLinks(page, read(page), find)).toEqual([]);
  });

  test('names existing files', () => {
    const named = [...read(page).matchAll(/`((?:src|test|bench|catalogue|scripts|docs|\.ci)\/[\w./-]*)`/g)];
    expect(named.map((match) => match[1]!).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test('closes the blocks that it opens', () => {
    const marks = [...read(page).matchAll(/<!-- (\/?)([\w:-]+) -->/g)].map((match) => match[1]! + match[2]!);
    const opened = marks.filter((mark) => !mark.startsWith('/'));
    expect(marks).toEqual(opened.flatMap((name) => [name, `/${name}`]));
  });
});

test('source files name existing pages', () => {
  const wrong = files
    .filter((path) => SOURCES.includes(path.split('/')[0]!) && /\.(ts|mjs|lua|sql)$/.test(path))
    // The pages of the tests above do not exist.
    .filter((path) => path !== 'test/unit/repository/pages.test.ts')
    .flatMap((path) =>
      [...read(path).matchAll(/\b(?:docs|bench)\/[\w./-]+\.md\b/g)].map(([page]) => ({ path, page })),
    )
    .filter(({ page }) => !existsSync(join(ROOT, page)));
  expect(wrong).toEqual([]);
});

test('ARCHITECTURE.md is short', () => {
  expect(read('ARCHITECTURE.md').trimEnd().split('\n').length).toBeLessThanOrEqual(300);
});

test('ARCHITECTURE.md has a row for each room of src/', () => {
  const [, table] = /^## Where things are$(.*?)^## /ms.exec(read('ARCHITECTURE.md')) ?? [];
  const rooms = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  expect(rooms.filter(({ name }) => !table!.includes(`| \`src/${name}/\``))).toEqual([]);
});

test('ARCHITECTURE.md says why each package is there that the program depends on', () => {
  const [, table] = /^## Dependencies$(.*)/ms.exec(read('ARCHITECTURE.md')) ?? [];
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(read('package.json'));
  const packages = Object.keys({ ...dependencies, ...optionalDependencies });
  expect(packages.length).toBeGreaterThan(0);
  expect(packages.filter((name) => !table!.includes(`\`${name}\``))).toEqual([]);
});
