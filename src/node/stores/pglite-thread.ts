/** Entry of the thread that runs PGlite: its SQL is computed on the thread that it lives in, and must not hold up buyers. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { PortCalls } from '../../lib/port-calls.ts';

const { directory, socketFolder } = workerData as { directory: string; socketFolder: string | undefined };
const MAX_CONNECTIONS = 4;
let db: PGlite | undefined;
let server: PGLiteSocketServer | undefined;

new PortCalls(parentPort!, {
  async start(): Promise<string> {
    db = await PGlite.create({ dataDir: directory });
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

/** The names that Postgres' clients look for in a folder. */
async function startOnSocket(folder: string): Promise<string> {
  const path = join(folder, '.s.PGSQL.5432');
  // Of a process that was killed: the folder is this one's own.
  rmSync(path, { force: true });
  server = new PGLiteSocketServer({ db: db!, path, maxConnections: MAX_CONNECTIONS });
  await server.start();
  return `postgres://postgres@localhost/postgres?host=${encodeURIComponent(folder)}`;
}
