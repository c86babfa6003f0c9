import { linkSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolderPrivate } from '../../config/private-folder.ts';
import { StockadeError } from '../../engine/errors.ts';

/**
 * The folders that this process has locked; a process may run several shops. The lock file alone does not tell: the number
 * in it may be that of an earlier process with the same id.
 */
const held = new Set<string>();

/**
 * Locks a data directory for this process, because two processes that open the same PGlite directory would corrupt it. If
 * the process that holds the lock is gone, this one takes it over.
 * @returns a function that unlocks it
 * @throws StockadeError `data_dir_in_use`, FolderNotPrivate
 */
export function lockDataDir(directory: string): () => void {
  makeFolderPrivate(directory);
  const folder = realpathSync(directory);
  if (held.has(folder))
    throw new StockadeError('data_dir_in_use', `${directory} is in use by another shop of this process`);
  const file = join(folder, 'lock');
  if (!claim(file)) {
    const holder = holderOf(file);
    if (holder !== undefined && isAlive(holder)) {
      throw new StockadeError(
        'data_dir_in_use',
        `${directory} is in use by process ${holder}; stop it, or set DATA_DIR to another directory`,
      );
    }
    if (holder !== undefined) removeStale(file, holder);
    if (!claim(file))
      throw new StockadeError('data_dir_in_use', `${directory} was just taken by another process`);
  }
  held.add(folder);
  return () => {
    held.delete(folder);
    rmSync(file, { force: true });
  };
}

/**
 * If two processes take over a lock at the same time, the second must not remove the first one's new lock. So each moves the
 * file away first and puts it back if it names another holder than expected.
 */
function removeStale(file: string, holder: number): void {
  const moved = `${file}.${process.pid}`;
  try {
    renameSync(file, moved);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  if (Number(readFileSync(moved, 'utf8')) !== holder) linkSync(moved, file);
  rmSync(moved);
}

/** The number in the file, which no process has if nothing was written into it; `undefined` if the file is gone. */
function holderOf(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Writes the number of this process to a draft and then links it into place. A file that stood there without its number, if only for a
 * moment, would be taken for that of a dead process.
 */
function claim(file: string): boolean {
  const draft = `${file}-draft.${process.pid}`;
  writeFileSync(draft, String(process.pid), { mode: 0o600 });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft);
  }
}

function isAlive(pid: number): boolean {
  if (!(pid > 0) || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;
