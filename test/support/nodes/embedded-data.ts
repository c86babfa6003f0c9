/**
 * The data folder that an embedded node has left, for copying: to create the database of PGlite takes five seconds of processor
 * time. The first test that asks for it has it made, for all test files of the run.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { until } from '../until.ts';
import { startTestNode } from './node.ts';

const LIMIT_MS = 180_000;
/** The folder of PGlite in a node's data folder. */
const DATABASE = 'pglite';

/** @returns its path; `undefined` if the run has no folder for shared files */
export async function embeddedData(): Promise<string | undefined> {
  const scratch = inject('scratch');
  if (scratch === undefined) return undefined;
  const folder = join(scratch, 'embedded');
  await until(async () => existsSync(folder) || (await make(folder)), {
    what: `${folder} is made`,
    timeoutMs: LIMIT_MS,
  });
  return folder;
}

/** @returns the path of an archive of its database; `undefined` if the run has no folder for shared files */
export async function embeddedArchive(): Promise<string | undefined> {
  const folder = await embeddedData();
  if (folder === undefined) return undefined;
  const archive = `${folder}.tar`;
  await promisify(execFile)('tar', ['-cf', archive, '-C', join(folder, DATABASE), '.']);
  return archive;
}

/** @returns whether it was made; not if another process is making it */
async function make(folder: string): Promise<boolean> {
  const lock = `${folder}.lock`;
  const isFirst = await mkdir(lock).then(
    () => true,
    () => false,
  );
  if (!isFirst) return false;
  try {
    await using node = await startTestNode();
    await node.stop();
    await rename(node.dataDir, folder);
    return true;
  } finally {
    await rmdir(lock);
  }
}
