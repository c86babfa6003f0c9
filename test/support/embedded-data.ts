/**
 * The data folder that an embedded node has left, for copying: to create the database of PGlite takes five seconds of processor
 * time. The first test that asks for it has it made, for all test files of the run.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { inject } from 'vitest';
import { startTestNode } from './node.ts';
import { until } from './until.ts';

const LIMIT_MS = 180_000;

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
