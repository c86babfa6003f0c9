/**
 * Lists in Markdown files that follow from the source: settings, codes, metrics. Each is read off the source, so that an
 * addition there fails here until the page has it. Links and paths: pages.test.ts.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { configTables } from '../../../src/config/describe.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { PROBLEM_CODES } from '../../../src/http/server/replies/problem-kinds.ts';
import { SCHEDULES } from '../../chaos/schedules.ts';
import { MUTATIONS } from '../../sim/planted/mutations.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

function sorted(names: Iterable<string>): string[] {
  return [...new Set(names)].sort();
}

test('the settings in docs/configuration.md are those of the program', () => {
  const [, tables] = /<!-- config -->\n(.*?)<!-- \/config -->/s.exec(read('docs/configuration.md')) ?? [];
  expect(tables, 'docs/contributing/recipes.md says how to print them').toBe(configTables());
});

test('docs/api/ names every code that an answer can have, with its status', () => {
  const statuses = PROBLEM_CODES.map((code) => `${code} ${problem(code).status}`);
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

test('the pages state the right number of planted bugs', () => {
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
