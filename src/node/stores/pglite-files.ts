/**
 * The folder of PGlite. A new one is filled from an archive that the build has made (scripts/new-pglite.mjs): to let PGlite
 * create its files takes four times as long.
 *
 * While a new folder is filled, a mark stands beside it. If a later start finds the mark, the process died meanwhile: the folder
 * is not whole, and nobody has used it, so it is filled again.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { PGlite } from '@electric-sql/pglite';

const ARCHIVE = new URL('./new-pglite.tar.gz', import.meta.url);

/** Opens the database in this folder; creates it if there is none. */
export async function openPglite(directory: string): Promise<PGlite> {
  const mark = `${directory}.unfinished`;
  if (existsSync(mark)) rmSync(directory, { recursive: true, force: true });
  if (existsSync(directory)) return PGlite.create({ dataDir: directory });
  writeFileSync(mark, '');
  // The archive is missing if the program runs from its source.
  const files = existsSync(ARCHIVE) ? { loadDataDir: new Blob([readFileSync(ARCHIVE)]) } : {};
  const database = await PGlite.create({ dataDir: directory, ...files });
  rmSync(mark);
  syncFolder(dirname(directory));
  return database;
}

/** After a power failure the mark must not be back beside a folder that has orders. */
function syncFolder(folder: string): void {
  // Windows can't do this for folders.
  if (process.platform === 'win32') return;
  const file = openSync(folder, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
