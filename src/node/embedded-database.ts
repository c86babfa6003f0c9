import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { lockDataDir } from './data-lock.ts';
import { PortCalls } from './port-calls.ts';

export interface EmbeddedDatabase {
  readonly url: string;
  /** Resolves with the reason if the thread ends without having been told to. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/**
 * PGlite in a thread of this process, behind a socket, so that it is reached as any Postgres is. It has one session: use
 * one connection. @throws StockadeError `data_dir_in_use`
 */
export async function startEmbeddedDatabase(dataDir: string): Promise<EmbeddedDatabase> {
  const unlock = lockDataDir(dataDir);
  const thread = new Worker(new URL('./pglite-thread.js', import.meta.url), {
    workerData: { directory: join(dataDir, 'pglite') },
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
    const url = await calls.call<string>('start');
    return {
      url,
      failed,
      async stop() {
        stopping = true;
        await calls.call('stop').catch(() => {});
        await thread.terminate();
        unlock();
      },
    };
  } catch (error) {
    stopping = true;
    await thread.terminate();
    unlock();
    throw error;
  }
}
