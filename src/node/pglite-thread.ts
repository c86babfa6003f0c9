/** Entry of the thread that runs PGlite: its SQL is computed on the thread that it lives in, and must not hold up buyers. */
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { PortCalls } from './port-calls.ts';

const { directory } = workerData as { directory: string };
let db: PGlite | undefined;
let server: PGLiteSocketServer | undefined;

new PortCalls(parentPort!, {
  async start(): Promise<string> {
    db = await PGlite.create({ dataDir: directory });
    server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 4 });
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
