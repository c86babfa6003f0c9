import { randomBytes } from 'node:crypto';
import { rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { settings } from '../../config/settings.ts';

/** A folder for this run only, so that the demo finds no data of an earlier run and leaves none behind. */
export function demoDataDir(): string {
  // In containers, process ids repeat.
  return join(String(settings.dataDir.fallback), `demo-${randomBytes(4).toString('hex')}`);
}

/** Removes that folder, and its parent if it is empty then. */
export async function removeDemoDataDir(dataDir: string): Promise<void> {
  await rm(dataDir, { recursive: true, force: true, maxRetries: 3 });
  await rmdir(dirname(dataDir)).catch(() => {});
}
