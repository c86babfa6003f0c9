/** The tiers of tests: the files that test/tiers.ts names exist, and each project of vitest.config.ts belongs to one tier. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import config from '../../../vitest.config.ts';
import { GROWING, IN_CI, LONGEST, OVER_NODE_HTTP, WITH_FROZEN_TIME } from '../../tiers.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

function projectsOf(script: string): string[] {
  const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));
  return [...scripts[script].matchAll(/--project '?([\w*-]+)'?/g)].map(([, pattern]) => pattern!);
}

const matches = (name: string, pattern: string) =>
  new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(name);

test.each(Object.entries({ GROWING, IN_CI, LONGEST, OVER_NODE_HTTP, WITH_FROZEN_TIME }))(
  'each file of %s exists, once',
  (_, files) => {
    const named = files.filter((file) => !file.includes('*'));
    expect(named.filter((file) => !existsSync(ROOT + file))).toEqual([]);
    expect(new Set(named).size).toBe(named.length);
  },
);

const projects = config.test!.projects!.map(
  (project) => (project as { test: { name: string; include: readonly string[] } }).test,
);

test('no file that is in CI alone is named by a project of `npm test` too: with a frozen clock, or with mocks', () => {
  const named = projects.filter(({ name }) => !/-ci$|^release/.test(name)).flatMap(({ include }) => include);
  expect(IN_CI.filter((file) => named.includes(file))).toEqual([]);
});

test('each project is in `npm test` or in `npm run test:release`, which has what `npm run test:ci` has', () => {
  const names = projects.map(({ name }) => name);
  const tiersOf = (name: string) =>
    ['test', 'test:ci', 'test:release'].filter((script) =>
      projectsOf(script).some((pattern) => matches(name, pattern)),
    );
  expect(names.map((name) => [name, tiersOf(name).join(' + ')])).toEqual(
    names.map((name) => [
      name,
      name.endsWith('-ci') ? 'test:ci + test:release' : name.startsWith('release') ? 'test:release' : 'test',
    ]),
  );
});
