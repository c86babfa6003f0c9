/**
 * A folder that nobody but its owner enters. What lies in it may be as open as its writer makes it: PGlite gives its files
 * to everybody (0666), whatever the umask. So it is closed before anything is written into it.
 *
 *   missing                         -> made, 0700
 *   ours, open to others            -> closed, and the caller is told
 *   ours, open, and for other things too (/tmp, a home, a project) -> refused: it is not for us to close
 *   another user's                  -> refused
 *
 * The administrator may put a link in its place; another user may not. Windows has no such modes: there it is only made.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { StockadeError } from '../engine/errors.ts';

const OWNER_ONLY = 0o700;
const OTHERS = 0o077;
const STICKY = 0o1000;
const ADMINISTRATOR = 0;
/** What a node or a demo puts there. */
const WRITTEN_HERE = /^(lock|ops-token|pglite|demo-|\.s\.PGSQL)/;
const ADVICE = 'set DATA_DIR to a folder that this program may make for itself';

export class FolderNotPrivate extends StockadeError {
  constructor(message: string) {
    super('open_folder', message);
  }
}

/**
 * Makes it, or closes it to others.
 * @returns the mode that it had, if others could enter it until now
 * @throws FolderNotPrivate if it can't be ours alone
 */
export function makeFolderPrivate(path: string): number | undefined {
  mkdirSync(path, { recursive: true, mode: OWNER_ONLY });
  refuseForeign(path);
  const mode = wideMode(path);
  if (mode === undefined) return undefined;
  chmodSync(path, OWNER_ONLY);
  if (wideMode(path) !== undefined)
    throw new FolderNotPrivate(
      `${path} is open to other users of this machine, and its file system does not let it be closed: ${ADVICE}`,
    );
  // Until it was closed, others could still put something into it.
  refuseForeign(path);
  return mode;
}

function refuseForeign(path: string): void {
  const fault = whyNotOurs(path);
  if (fault !== undefined) throw new FolderNotPrivate(fault);
}

/** Its mode, if others may enter it; `undefined` if not, or where there are no modes. */
export function wideMode(path: string): number | undefined {
  if (process.getuid === undefined) return undefined;
  const mode = statSync(path).mode & 0o777;
  return (mode & OTHERS) === 0 ? undefined : mode;
}

/** Why a folder that is there can't be ours alone; `undefined` if it can. What others have put into it would be believed. */
export function whyNotOurs(path: string): string | undefined {
  const user = process.getuid?.();
  if (user === undefined) return undefined;
  const isForeign = ({ uid }: Stats) => uid !== user;
  const place = lstatSync(path);
  if (place.isSymbolicLink() && isForeign(place) && place.uid !== ADMINISTRATOR)
    return `${path} is a link that user ${place.uid} has made, and this process runs as user ${user}: ${ADVICE}`;
  const folder = statSync(path);
  if (isForeign(folder))
    return `${path} belongs to user ${folder.uid}, and this process runs as user ${user}: ${ADVICE}`;
  const planted = readdirSync(path).find((name) => {
    // Another node that starts here removes its draft of the token meanwhile.
    const found = lstatSync(join(path, name), { throwIfNoEntry: false });
    return found !== undefined && isForeign(found);
  });
  if (planted !== undefined)
    return `${join(path, planted)} belongs to another user than this process, ${user}: remove it if it is not yours, or ${ADVICE}`;
  return isShared(path, folder)
    ? `${path} is open to other users of this machine, and not for Stockade's data alone: ${ADVICE}, or close it (chmod 700)`
    : undefined;
}

function isShared(path: string, { mode }: Stats): boolean {
  if ((mode & OTHERS) === 0) return false;
  return (mode & STICKY) !== 0 || readdirSync(path).some((name) => !WRITTEN_HERE.test(name));
}
