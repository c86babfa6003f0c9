/** Entry of the thread that runs PGlite. PGlite executes SQL on its own thread, so on the main thread it would delay buyers. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { PortCalls } from '../../lib/port-calls.ts';
import { openPglite } from './pglite-files.ts';

const { directory, socketFolder } = workerData as { directory: string; socketFolder: string | undefined };
const MAX_CONNECTIONS = 4;
let db: PGlite | undefined;
let server: PGLiteSocketServer | undefined;

new PortCalls(parentPort!, {
  async start(): Promise<string> {
    db = await openPglite(directory);
    if (socketFolder !== undefined) return startOnSocket(socketFolder);
    server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: MAX_CONNECTIONS });
    const listening = new Promise<string>((resolve) => {
      server!.addEventListener('listening', (event) => {
        const { port } = (event as CustomEvent<{ port: number }>).detail;
        resolve(`postgres://postgres@127.0.0.1:${port}/postgres`);
      });
    });
    await server.start();
    return listening;
  },
  async stop(): Promise<void> {
    await server?.stop();
    await db?.close();
  },
});

/** Listens in the folder under the name that Postgres' clients look for. */
async function startOnSocket(folder: string): Promise<string> {
  const path = join(folder, '.s.PGSQL.5432');
  // A killed process may have left its socket. No other process uses this folder.
  rmSync(path, { force: true });
  server = new PGLiteSocketServer({ db: db!, path, maxConnections: MAX_CONNECTIONS });
  await server.start();
  return `postgres://postgres@localhost/postgres?host=${encodeURIComponent(folder)}`;
}
