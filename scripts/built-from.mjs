// What dist/ was built from: a file in it says so, once a build has ended.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/** The package leaves it out, as it does all caches. */
const BUILT_FROM = 'built-from.cache';

/**
 * Whether a build of these files and folders has ended, and all files that it made are there.
 * @param {string} root
 * @param {readonly string[]} sources
 */
export function isBuilt(root, sources) {
  const file = join(root, 'dist', BUILT_FROM);
  if (!existsSync(file)) return false;
  const [hash, ...made] = readFileSync(file, 'utf8').split('\n');
  return hash === hashOf(root, sources) && made.every((name) => existsSync(join(root, 'dist', name)));
}

/**
 * Empties dist/.
 * @param {string} root
 * @param {readonly string[]} sources
 * @returns {() => void} to be called when the build has ended. It fails if another build has emptied dist/ meanwhile
 */
export function beginBuild(root, sources) {
  const dist = join(root, 'dist');
  const hash = hashOf(root, sources);
  // First: if the removal is broken off, what remains is no build.
  rmSync(join(dist, BUILT_FROM), { force: true });
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  const begun = join(dist, `build-${process.pid}.cache`);
  writeFileSync(begun, '');
  return () => {
    if (!existsSync(begun)) throw new Error('another build has emptied dist/: build again when it has ended');
    const made = filesIn(dist).filter((name) => !name.endsWith('.cache'));
    writeFileSync(begun, [hash, ...made].join('\n'));
    renameSync(begun, join(dist, BUILT_FROM));
  };
}

/** Of the names and contents of these files and folders, and of the version of Node.js, which the code caches are for. */
function hashOf(root, sources) {
  const hash = createHash('sha256').update(process.version);
  for (const source of sources) {
    const path = join(root, source);
    const files = statSync(path).isDirectory() ? filesIn(path).map((name) => join(source, name)) : [source];
    for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex');
}

/** Without links that lead nowhere: an editor may put one beside a file that is being changed. */
function filesIn(folder) {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.isFile()).sort();
}
