/** The built product: nodes run from dist/, because their worker threads need JavaScript. */
import { execFile } from 'node:child_process';
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

/** Builds dist/ unless it was built from what is here now. */
export async function ensureBuilt(): Promise<void> {
  try {
    await promisify(execFile)(process.execPath, [join(root, 'scripts', 'build.mjs'), '--if-changed']);
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`the build failed, so that no node can be started:\n${stdout}${stderr}`, {
      cause: error,
    });
  }
}
