/** The built product: nodes run from dist/, because their worker threads need JavaScript. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The program that a user runs as `stockade`. */
export const mainProgram = join(root, 'dist', 'cli', 'main.js');

/** Options of Node for a program. A deprecation warning ends it, and so fails the test. */
const NODE_FLAGS = ['--throw-deprecation'];

/** For a program with PGlite. V8 does not optimise WebAssembly, which saves half of the processor time, because a test is short. */
export const PGLITE_FLAGS = [...NODE_FLAGS, '--liftoff-only'];

/** Commands that start a node. Without DATABASE_URL it has PGlite. */
const NODE_COMMANDS = new Set(['serve', 'demo', 'rehearse']);

/** Options of Node for a command. With those for PGlite, V8 would refuse the code caches (src/node/process/run-bundle.ts). */
export function nodeFlags(command: string | undefined, env: NodeJS.ProcessEnv): readonly string[] {
  const isOnPglite = NODE_COMMANDS.has(command ?? '') && env.DATABASE_URL === undefined;
  return isOnPglite ? PGLITE_FLAGS : NODE_FLAGS;
}

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
