/** The built product: nodes run from dist/, because their worker threads need JavaScript. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The program that a user runs as `stockade`. */
export const mainProgram = join(root, 'dist', 'cli', 'main.js');

/**
 * Options of Node for the program. A deprecation warning ends it, and so fails the test. V8 does not optimise WebAssembly, which
 * saves a third of the processor time of a process with PGlite that lives as short as in a test.
 */
export const NODE_FLAGS = ['--throw-deprecation', '--liftoff-only'];

/** A build that failed lacks this file. */
const lastWritten = 'LICENSES.txt';

/** Builds dist/ if any file in src/ is newer. */
export async function ensureBuilt(): Promise<void> {
  const sources = timesIn(join(root, 'src'));
  const products = timesIn(join(root, 'dist'));
  const isWhole = existsSync(join(root, 'dist', lastWritten));
  if (isWhole && Math.max(...sources) < Math.min(...products)) return;
  try {
    await promisify(execFile)(process.execPath, [join(root, 'scripts', 'build.mjs')]);
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`the build failed, so that no node can be started:\n${stdout}${stderr}`, {
      cause: error,
    });
  }
}

/** When each file was last written. */
function timesIn(folder: string): number[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs);
  } catch {
    return [];
  }
}
