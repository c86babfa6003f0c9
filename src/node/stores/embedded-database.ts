import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { PortCalls, ThreadEnd } from '../../lib/port-calls.ts';
import { lockDataDir } from '../process/data-lock.ts';
import { type SocketFolder, socketFolder } from '../process/socket-folder.ts';

export interface EmbeddedDatabase {
  readonly url: string;
  /** Resolves with the reason if the thread ends before it was stopped. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/**
 * PGlite asks for no password, and every user of the machine can connect to a loopback port. So PGlite listens on a socket in
 * a folder that only its owner can enter; on Windows, which lacks this, on a port.
 */
function socketPlace(dataDir: string): SocketFolder | undefined {
  return process.platform === 'win32' ? undefined : socketFolder(resolve(dataDir), '.s.PGSQL.5432'.length);
}

/**
 * Starts PGlite in a thread of this process. It listens on a socket, so that it is used like any Postgres. It has one
 * session only: use one connection. @throws StockadeError `data_dir_in_use`
 */
export async function startEmbeddedDatabase(dataDir: string): Promise<EmbeddedDatabase> {
  const unlock = await lockDataDir(dataDir);
  const place = socketPlace(dataDir);
  const thread = new Worker(new URL('./pglite-thread.js', import.meta.url), {
    workerData: { directory: join(dataDir, 'pglite'), socketFolder: place?.name },
  });
  const calls = new PortCalls(thread, {});
  const ending = new ThreadEnd(thread, "PGlite's thread", calls);
  const end = async () => {
    ending.expect();
    await thread.terminate();
    place?.remove();
    unlock();
  };
  try {
    const url = await calls.call<string>('start');
    return {
      url,
      failed: ending.failed,
      async stop() {
        ending.expect();
        await calls.call('stop').catch(() => {});
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}
