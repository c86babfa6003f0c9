/**
 * What the Markdown files say and a program can check: the table of settings, links, paths, codes and metrics. Each list
 * is read off the source, so that whoever adds to it is told which page lacks it.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { configTables } from '../../../src/config/describe.ts';
import { isProblemCode, problem } from '../../../src/http/server/problem.ts';
import { SCHEDULES } from '../../chaos/schedules.ts';
import { MUTATIONS } from '../../sim/mutations.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SKIPPED = new Set(['node_modules', 'dist', 'coverage']);

function pagesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith('.') || SKIPPED.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return pagesBelow(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const pages = pagesBelow('');

/** The text without fenced code: what stands there is no Markdown. */
function prose(path: string): string {
  return read(path).replaceAll(/^```.*?^```$/gms, '');
}

/** As GitHub names the anchors of headings: lower case, no punctuation, dashes for blanks, a number for a second one. */
function anchorsOf(path: string): Set<string> {
  const seen = new Map<string, number>();
  const names = [...prose(path).matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading]) => {
    const name = heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return before === 0 ? name : `${name}-${before}`;
  });
  return new Set(names);
}

function brokenLinks(page: string): string[] {
  const targets = [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!);
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path, anchor] = target.split('#') as [string, string?];
      const file = path === '' ? resolve(ROOT, page) : resolve(ROOT, dirname(page), path);
      if (!existsSync(file)) return true;
      return anchor !== undefined && !anchorsOf(file.slice(ROOT.length)).has(anchor);
    });
}

function sorted(names: Iterable<string>): string[] {
  return [...new Set(names)].sort();
}

test('the settings in docs/configuration.md are those of the program', () => {
  const [, tables] = /<!-- config -->\n(.*?)<!-- \/config -->/s.exec(read('docs/configuration.md')) ?? [];
  expect(tables, 'docs/contributing/recipes.md says how to print them').toBe(configTables());
});

describe.each(pages)('%s', (page) => {
  test('links to what there is', () => {
    expect(brokenLinks(page)).toEqual([]);
  });

  test('names files that there are', () => {
    const named = [...read(page).matchAll(/`((?:src|test|bench|scripts|docs|\.ci)\/[\w./-]*)`/g)];
    expect(named.map((match) => match[1]!).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test('closes the blocks that it opens', () => {
    const marks = [...read(page).matchAll(/<!-- (\/?)([\w:-]+) -->/g)].map((match) => match[1]! + match[2]!);
    const opened = marks.filter((mark) => !mark.startsWith('/'));
    expect(marks).toEqual(opened.flatMap((name) => [name, `/${name}`]));
  });
});

test('docs/api/ names every code that an answer can have, with its status', () => {
  const codes = [...read('src/http/server/problem.ts').matchAll(/^ {2}(\w+): \{/gm)].map(
    (match) => match[1]!,
  );
  const statuses = codes.filter(isProblemCode).map((code) => `${code} ${problem(code).status}`);
  expect(statuses).toContain('sold_out 409');
  const rows = [...read('docs/api/README.md').matchAll(/^\| `(\w+)` \| (\d{3}) \|/gm)];
  expect(sorted(rows.map(([, code, status]) => `${code} ${status}`))).toEqual(sorted(statuses));
});

test('docs/operations/metrics.md names every metric', () => {
  const sources = readdirSync(join(ROOT, 'src/node'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => read(join('src/node', name)))
    .join('\n');
  const metrics = [...sources.matchAll(/'(stockade_\w+)'/g)].map((match) => match[1]!);
  expect(metrics.length).toBeGreaterThan(10);
  const documented = [...read('docs/operations/metrics.md').matchAll(/^\| `(stockade_\w+)` \|/gm)];
  expect(sorted(documented.map((match) => match[1]!))).toEqual(sorted(metrics));
});

test('the README is short', () => {
  expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(200);
});

test('the pages tell of as many planted bugs as there are', () => {
  for (const page of ['README.md', 'docs/fault-tests/simulation.md'])
    expect(read(page), page).toContain(`Each of ${MUTATIONS.length} planted bugs was found`);
});

test('the README counts the faults on real processes as their table does', () => {
  const page = read('docs/fault-tests/processes.md');
  const rows = [...page.matchAll(/^\| `([\w-]+)`: .*/gm)].map(([row, name]) => ({
    name: name!,
    cells: row.split(' | '),
  }));
  expect(sorted(rows.map(({ name }) => name))).toEqual(sorted(SCHEDULES.map(({ name }) => name)));
  const sum = (column: number) =>
    rows.reduce((all, { cells }) => all + Number.parseInt(cells[column]!, 10), 0);
  const [strikes, accepted] = [sum(1), sum(6)];
  expect(read('README.md')).toContain(`${strikes} faults of ${SCHEDULES.length} kinds`);
  expect(read('README.md')).toContain(`${accepted} orders answered \`202\` were lost`);
});
