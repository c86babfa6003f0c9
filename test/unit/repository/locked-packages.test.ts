import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  faultsOf,
  type LockedPackage,
  type LockFile,
  type Manifest,
} from '../../../scripts/locked-packages.mjs';

const json = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8')) as unknown;
const manifest = json('package.json') as Manifest;
const lock = json('package-lock.json') as LockFile;

test('the installed packages are the ones that were reviewed', () => {
  expect(faultsOf(manifest, lock)).toEqual([]);
});

describe('a lock file is refused', () => {
  const [path, sound] = Object.entries(lock.packages).find(([name]) => name === 'node_modules/pg')!;
  const withPg = (change: Partial<LockedPackage>): LockFile => ({
    packages: { ...lock.packages, [path]: { ...sound, ...change } },
  });

  test.each([
    [{ integrity: '' }, 'has no SHA-512 hash'],
    [{ integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }, 'has no SHA-512 hash'],
    [{ resolved: 'https://mirror.example/pg.tgz' }, 'names the registry that one machine downloaded it from'],
    [{ license: 'GPL-3.0' }, 'has the licence GPL-3.0, which nobody has reviewed'],
    [{ license: 'MPL-2.0' }, 'has the licence MPL-2.0, which nobody has reviewed'],
    [{ hasInstallScript: true }, 'runs a program when it is installed'],
  ])('whose package has %j', (change, fault) => {
    expect(faultsOf(manifest, withPg(change))).toEqual([`pg ${sound.version} ${fault}`]);
  });

  test('that has more packages than were looked at', () => {
    const packages = { ...lock.packages, 'node_modules/one-more': sound };
    expect(faultsOf(manifest, { packages })).toEqual([
      expect.stringMatching(/^a node runs with \d+ packages/),
    ]);
  });
});

test.each(['^8.23.1', '~8.23.1', '8.x', '*', 'latest', 'file:../pg', 'github:brianc/node-postgres'])(
  'a dependency on %s is refused: it is more than one version',
  (version) => {
    expect(faultsOf({ dependencies: { pg: version } }, lock)).toEqual([
      `pg is ${version}: package.json must name one version`,
    ]);
  },
);

test('one of several licences is enough', () => {
  const packages = Object.fromEntries(
    Object.entries(lock.packages).map(([name, entry]) => [name, { ...entry, license: '(MIT OR GPL-3.0)' }]),
  );
  expect(faultsOf(manifest, { packages })).toEqual([]);
});

describe('npm run audit', () => {
  /** Without access to npm, so that vulnerabilities are not looked up. */
  function audit(...args: string[]) {
    const script = fileURLToPath(new URL('../../../scripts/audit.mjs', import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
      encoding: 'utf8',
      env: { PATH: '' },
    });
    return { status, stdout, stderr };
  }

  test('--json: one object, which lists the packages that were not looked up', () => {
    const { status, stdout } = audit('--json');
    expect(JSON.parse(stdout)).toEqual({ ok: true, faults: [], vulnerabilities: null });
    expect(status).toBe(0);
  });

  test('prints its usage for other arguments', () => {
    expect(audit('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--json') });
    for (const unknown of ['--fix', 'pg']) {
      const { status, stdout, stderr } = audit(unknown);
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      expect(stderr).toMatch(/^error: .*\n.*--help/);
    }
  });
});
