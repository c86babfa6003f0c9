/**
 * Locks a data folder for one process, because two processes that open the same PGlite would destroy its data.
 *
 * The lock is a socket in the folder, on which its holder listens. The kernel ends that when the holder dies, so a lock never has to be
 * removed by hand. It also holds against a process in another container, which has process ids of its own.
 *
 *   lock.N, the highest N ──a process listens──> held
 *                     └──nobody listens──> free: whoever puts lock.N+1 there first holds it
 *
 * Only lower files are removed, and the highest stays when its holder ends. So the highest number never falls, and no process removes a
 * lock that is held.
 */
import { randomBytes } from 'node:crypto';
import {
  linkSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeFolderPrivate } from '../../config/private-folder.ts';
import { StockadeError } from '../../engine/errors.ts';
import { otherProcessRuns } from './other-process.ts';
import { socketFolder } from './socket-folder.ts';

/** The folders that this process has locked, or is about to lock. A process may run several shops. */
const held = new Set<string>();

/**
 * @returns a function that unlocks the folder
 * @throws StockadeError `data_dir_in_use`, FolderNotPrivate
 */
export async function lockDataDir(directory: string): Promise<() => void> {
  makeFolderPrivate(directory);
  const folder = realpathSync(directory);
  if (held.has(folder)) throw inUse(directory, 'another shop of this process');
  held.add(folder);
  try {
    const unlock = process.platform === 'win32' ? await lockByName(directory) : await lock(folder, directory);
    return () => {
      unlock();
      held.delete(folder);
    };
  } catch (error) {
    held.delete(folder);
    throw error;
  }
}

/** @param told the folder's name in messages */
async function lock(folder: string, told: string): Promise<() => void> {
  const place = socketFolder(folder, draftName().length);
  try {
    refuseOlderVersion(folder, told);
    for (;;) {
      const last = highestLock(folder);
      const holder = await holderOf(join(place.name, `lock.${last}`));
      if (holder !== undefined) throw inUse(told, holder);
      const server = await claim(place.name, last + 1);
      if (server) return () => unlock(server, folder, last + 1);
    }
  } finally {
    place.remove();
  }
}

/** Leaves an empty file in its place, because many programs that copy folders fail at a socket. */
function unlock(server: Server, folder: string, number: number): void {
  const empty = join(folder, draftName());
  try {
    writeFileSync(empty, '', { mode: 0o600 });
    renameSync(empty, join(folder, `lock.${number}`));
  } catch {
    // The folder is gone, or its disk is full. A socket on which nobody listens is free, too.
  } finally {
    server.close();
  }
}

/** No name in the folder is longer. */
const draftName = () => `lock-draft.${randomBytes(6).toString('hex')}`;

/** @returns `undefined` if another process was faster */
async function claim(folder: string, number: number): Promise<Server | undefined> {
  const draft = join(folder, draftName());
  // Listens before anybody can see the lock: a lock on which nobody listens is free.
  const server = await listening(draft);
  let isHeld = false;
  try {
    isHeld = putThere(draft, folder, number);
  } finally {
    rmSync(draft, { force: true });
    if (!isHeld) server.close();
  }
  return isHeld ? server : undefined;
}

/** @returns whether this is now the lock */
function putThere(draft: string, folder: string, number: number): boolean {
  try {
    linkSync(draft, join(folder, `lock.${number}`));
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
  // This process may have looked long ago. Since then a higher lock may have been put there, and this number removed.
  const last = highestLock(folder);
  for (const lower of locksIn(folder)) if (lower < last) removeLock(folder, lower);
  return last === number;
}

const removeLock = (folder: string, number: number) =>
  rmSync(join(folder, `lock.${number}`), { force: true });

const locksIn = (folder: string) =>
  readdirSync(folder).flatMap((name) => (/^lock\.\d{1,15}$/.test(name) ? [Number(name.slice(5))] : []));

/** 0 if there is none. */
const highestLock = (folder: string) => Math.max(0, ...locksIn(folder));

/** Listens on a socket, and tells each that connects who it is. It does not keep the process alive. */
function listening(path: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(`process ${process.pid} on ${hostname()}`);
  }).unref();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // In a worker of node:cluster, its own process must listen, and not the primary.
    server.listen({ path, exclusive: true }, () => resolve(server));
  });
}

/** How long a holder may take to say who it is. It may be frozen, or at work. */
const TELL_MS = 500;

/** Nobody listens; there is no such file; it is the empty file of a holder that has ended (macOS). */
const FREE: ReadonlySet<string | undefined> = new Set(['ECONNREFUSED', 'ENOENT', 'ENOTSOCK']);

/** Who listens on this socket; `undefined` if nobody does. */
function holderOf(path: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let holder = '';
    const socket = connect(path);
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.setTimeout(TELL_MS, () => socket.destroy()));
    socket.on('data', (text: string) => {
      holder += text;
    });
    socket.on('close', () => resolve(holder || 'another process'));
    socket.on('error', (error) => {
      const code = codeOf(error);
      if (FREE.has(code)) resolve(undefined);
      // Too many wait for a frozen holder to accept them, or it has ended in this moment.
      else if (code === 'EAGAIN' || code === 'ECONNRESET' || code === 'EPIPE') resolve('another process');
      else reject(error);
    });
  });
}

/** Windows has no sockets in folders, but names that one process at a time may have. */
async function lockByName(directory: string): Promise<() => void> {
  const name = Buffer.from(realpathSync.native(directory).toLowerCase()).toString('base64url');
  const server = await listening(`\\\\?\\pipe\\stockade-${name}`).catch((error: unknown) => {
    throw codeOf(error) === 'EADDRINUSE' ? inUse(directory, 'another process') : error;
  });
  return () => void server.close();
}

/** A version up to 0.2.0 wrote its process id into a file. */
function refuseOlderVersion(folder: string, told: string): void {
  const file = join(folder, 'lock');
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    if (pid > 0 && otherProcessRuns(pid)) throw inUse(told, `process ${pid}`);
    rmSync(file, { force: true });
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

const inUse = (directory: string, holder: string) =>
  new StockadeError(
    'data_dir_in_use',
    `${directory} is in use by ${holder}; stop it, or set DATA_DIR to another directory`,
  );

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;
