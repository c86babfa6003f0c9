import { linkSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { closeFolder } from '../../config/private-folder.ts';
import { StockadeError } from '../../engine/errors.ts';

/** Those of this process, which may hold several shops. A lock file with its number may be from a process before it. */
const held = new Set<string>();

/**
 * Makes a data directory this process's own: PGlite would corrupt a directory that two processes have open.
 * A lock whose process is gone is taken over.
 * @returns a function that gives it back
 * @throws StockadeError `data_dir_in_use`, OpenFolder
 */
export function lockDataDir(directory: string): () => void {
  closeFolder(directory);
  const folder = realpathSync(directory);
  if (held.has(folder))
    throw new StockadeError('data_dir_in_use', `${directory} is in use by another shop of this process`);
  const file = join(folder, 'lock');
  if (!claim(file)) {
    const holder = Number(readFileSync(file, 'utf8'));
    if (isAlive(holder)) {
      throw new StockadeError(
        'data_dir_in_use',
        `${directory} is in use by process ${holder}; stop it, or set DATA_DIR to another directory`,
      );
    }
    removeStale(file, holder);
    if (!claim(file))
      throw new StockadeError('data_dir_in_use', `${directory} was just taken by another process`);
  }
  held.add(folder);
  return () => {
    held.delete(folder);
    rmSync(file, { force: true });
  };
}

/** Of two who take over at once, the second must not remove the first one's new lock: it looks at what it has moved. */
function removeStale(file: string, holder: number): void {
  const moved = `${file}.${process.pid}`;
  try {
    renameSync(file, moved);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (Number(readFileSync(moved, 'utf8')) !== holder) linkSync(moved, file);
  rmSync(moved);
}

function claim(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  if (!(pid > 0) || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
