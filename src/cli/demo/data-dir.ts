import { rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { settings } from '../../config/settings.ts';

/** A folder of this run's own, so that the demo finds nothing of yesterday's and leaves nothing behind. */
export function demoDataDir(): string {
  return join(String(settings.dataDir.fallback), `demo-${process.pid}`);
}

/** Removes it, and the folder around it if nothing else is in there. */
export async function removeDemoDataDir(dataDir: string): Promise<void> {
  await rm(dataDir, { recursive: true, force: true, maxRetries: 3 });
  await rmdir(dirname(dataDir)).catch(() => {});
}
