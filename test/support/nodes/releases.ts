/**
 * Earlier releases, for tests of a shop whose nodes have two versions.
 *
 * A release is its commit in this repository. It is built once, into a folder below node_modules. There it finds this tree's
 * packages, and `npm ci` removes it. A repository without history (a shallow clone, an archive) can't build one.
 */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface Release {
  readonly version: string;
  readonly commit: string;
}

/** The release before the last one: the last commit of its version. */
export const OLDER_RELEASE: Release = {
  version: '0.1.0',
  commit: 'effd7c0246d8faa32701549777eebb4d5ef7124d',
};

/** The last release. */
export const LAST_RELEASE: Release = {
  version: '0.2.0',
  commit: 'c1b1a0c62c26099bc88ca5f87b73af44ead36f9c',
};

const root = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);
const git = (...args: string[]) =>
  execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', stdio: 'pipe' }).trim();

/** Why this repository can't build the release; `undefined` if it can. @throws if it has a history without that commit */
export function whyNotBuildable({ version, commit }: Release): string | undefined {
  try {
    if (git('rev-parse', '--show-prefix') !== '' || git('rev-parse', '--is-shallow-repository') === 'true')
      return `the repository has no history, so ${version} can’t be built from it`;
  } catch {
    return `this is no git repository, so ${version} can’t be built from it`;
  }
  git('cat-file', '-e', `${commit}^{commit}`);
  return undefined;
}

/** Builds a release, if no test has before. @returns its program, for `startTestNode` */
export async function buildRelease({ version, commit }: Release): Promise<string> {
  const cache = join(root, 'node_modules', '.cache');
  const folder = join(cache, `stockade-${version}-${commit.slice(0, 12)}`);
  const program = join('dist', 'cli', 'main.js');
  if (existsSync(folder)) return join(folder, program);
  await mkdir(cache, { recursive: true });
  const draft = await mkdtemp(join(cache, 'release-'));
  const archive = join(draft, 'release.tar');
  await run('git', ['-C', root, 'archive', '--output', archive, commit]);
  await run('tar', ['-xf', archive, '-C', draft]);
  if (await areHere(await packagesOf(draft))) {
    // From 0.2.0 on, the build bundles packages from a folder of its own tree.
    await symlink(join(root, 'node_modules'), join(draft, 'node_modules'));
    await run(process.execPath, [join(draft, 'scripts', 'build.mjs')]);
  } else await run('npm', ['ci'], { cwd: draft });
  // Another process may have been faster.
  await rename(draft, folder).catch(() => rm(draft, { recursive: true, force: true }));
  return join(folder, program);
}

type Packages = Readonly<Record<string, string>>;

/** What a release needs to be built and to run. */
async function packagesOf(folder: string): Promise<Packages> {
  const { dependencies, devDependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  return { ...dependencies, typescript: devDependencies.typescript };
}

/** Whether this tree has each package in that version. It may have more. */
async function areHere(packages: Packages): Promise<boolean> {
  const { dependencies, optionalDependencies, devDependencies } = JSON.parse(
    await readFile(join(root, 'package.json'), 'utf8'),
  );
  const here = { ...devDependencies, ...optionalDependencies, ...dependencies };
  return Object.entries(packages).every(([name, version]) => here[name] === version);
}
