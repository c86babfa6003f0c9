import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { PortCalls } from '../../lib/port-calls.ts';
import { lockDataDir } from '../process/data-lock.ts';

export interface EmbeddedDatabase {
  readonly url: string;
  /** Resolves with the reason if the thread ends without having been told to. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/** What the path of a socket may have on every system, less its name in the folder. */
const SOCKET_FOLDER_MAX_BYTES = 103 - '/.s.PGSQL.5432'.length;

/**
 * PGlite asks nobody for a password, and a port of the loopback is open to every user of the machine: so it listens in a
 * folder that is its owner's alone. Windows has to do with the port.
 */
function socketPlace(dataDir: string): { folder: string | undefined; remove: () => void } {
  if (process.platform === 'win32') return { folder: undefined, remove: () => {} };
  const folder = resolve(dataDir);
  if (Buffer.byteLength(folder) <= SOCKET_FOLDER_MAX_BYTES) return { folder, remove: () => {} };
  const short = mkdtempSync(join(tmpdir(), 'stockade-'));
  return { folder: short, remove: () => rmSync(short, { recursive: true, force: true }) };
}

/**
 * PGlite in a thread of this process, behind a socket, so that it is reached as any Postgres is. It has one session: use
 * one connection. @throws StockadeError `data_dir_in_use`
 */
export async function startEmbeddedDatabase(dataDir: string): Promise<EmbeddedDatabase> {
  const unlock = lockDataDir(dataDir);
  const place = socketPlace(dataDir);
  const thread = new Worker(new URL('./pglite-thread.js', import.meta.url), {
    workerData: { directory: join(dataDir, 'pglite'), socketFolder: place.folder },
  });
  const calls = new PortCalls(thread, {});
  let stopping = false;
  const failed = new Promise<Error>((resolve) => {
    thread.on('error', resolve);
    thread.on('exit', (code) => {
      calls.abandon();
      if (!stopping) resolve(new Error(`PGlite's thread ended with code ${code}`));
    });
  });
  try {
    // What has ended the thread says more than that it has ended.
    const started = Promise.race([
      failed.then((error) => Promise.reject(error)),
      calls.call<string>('start'),
    ]);
    const url = await started;
    return {
      url,
      failed,
      async stop() {
        stopping = true;
        await calls.call('stop').catch(() => {});
        await thread.terminate();
        place.remove();
        unlock();
      },
    };
  } catch (error) {
    stopping = true;
    await thread.terminate();
    place.remove();
    unlock();
    throw error;
  }
}
