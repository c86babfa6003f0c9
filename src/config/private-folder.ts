/**
 * A folder that only its owner can enter. The files in it may be open to everyone: PGlite makes its files with the mode 0666,
 * whatever the umask. So the folder is made private before anything is written into it.
 *
 *   missing                             -> made, with the mode 0700
 *   ours, others may enter it           -> made private, and the caller is told
 *   the same, but with other files too  -> refused: /tmp, a home or a project must not be made private
 *   another user's                      -> refused
 *
 * In its place there may be a link that the administrator made, but none of another user. Windows has no such modes: there
 * the folder is only made.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { StockadeError } from '../engine/errors.ts';

const OWNER_ONLY = 0o700;
const OTHERS = 0o077;
const STICKY = 0o1000;
const ADMINISTRATOR = 0;
/** Names that a node or a demo writes there. */
const WRITTEN_HERE = /^(lock|ops-token|pglite|demo-|\.s\.PGSQL)/;
const ADVICE = 'set DATA_DIR to a folder that this program may make for itself';

export class FolderNotPrivate extends StockadeError {
  constructor(message: string) {
    super('open_folder', message);
  }
}

/**
 * Makes the folder if it is missing, or makes it private.
 * @returns the mode that it had, if others could enter it until now
 * @throws FolderNotPrivate if it can't be made private
 */
export function makeFolderPrivate(path: string): number | undefined {
  mkdirSync(path, { recursive: true, mode: OWNER_ONLY });
  refuseForeign(path);
  const mode = wideMode(path);
  if (mode === undefined) return undefined;
  chmodSync(path, OWNER_ONLY);
  if (wideMode(path) !== undefined)
    throw new FolderNotPrivate(
      `other users of this machine may enter ${path}, and its file system does not allow to change that: ${ADVICE}`,
    );
  // Until now, others could still put files into it.
  refuseForeign(path);
  return mode;
}

function refuseForeign(path: string): void {
  const fault = whyNotOurs(path);
  if (fault !== undefined) throw new FolderNotPrivate(fault);
}

/** The folder's mode if others may enter it; `undefined` if they may not, or if the system has no modes. */
export function wideMode(path: string): number | undefined {
  if (process.getuid === undefined) return undefined;
  const mode = statSync(path).mode & 0o777;
  return (mode & OTHERS) === 0 ? undefined : mode;
}

/**
 * Why an existing folder can't be made private; `undefined` if it can. Files of other users in it count, because this process
 * would trust them.
 */
export function whyNotOurs(path: string): string | undefined {
  const user = process.getuid?.();
  if (user === undefined) return undefined;
  const isForeign = ({ uid }: Stats) => uid !== user;
  const place = lstatSync(path);
  if (place.isSymbolicLink() && isForeign(place) && place.uid !== ADMINISTRATOR)
    return `${path} is a link made by user ${place.uid}, and this process runs as user ${user}: ${ADVICE}`;
  const folder = statSync(path);
  if (isForeign(folder))
    return `${path} belongs to user ${folder.uid}, and this process runs as user ${user}: ${ADVICE}`;
  const planted = readdirSync(path).find((name) => {
    // The file may be gone: another node that starts at the same time removes its draft of the token.
    const found = lstatSync(join(path, name), { throwIfNoEntry: false });
    return found !== undefined && isForeign(found);
  });
  if (planted !== undefined)
    return `${join(path, planted)} belongs to another user than ${user}, the user of this process: remove it if it is not yours, or ${ADVICE}`;
  return isShared(path, folder)
    ? `other users of this machine may enter ${path}, and it does not hold Stockade's data alone: ${ADVICE}, or deny them access (chmod 700)`
    : undefined;
}

function isShared(path: string, { mode }: Stats): boolean {
  if ((mode & OTHERS) === 0) return false;
  return (mode & STICKY) !== 0 || readdirSync(path).some((name) => !WRITTEN_HERE.test(name));
}
