import { createServer } from 'node:net';
import { StockadeError } from '../../engine/errors.ts';

/**
 * Finds out whether a port is free, and which one where any will do. uWebSockets.js shares ports among threads, and with
 * them among processes: without this two nodes would take turns at one port, and nobody would be told.
 *
 * @param port 0 for any free one
 * @returns the port @throws StockadeError `port_in_use`
 */
export function claimPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'something else listens there' : error.message;
      reject(new StockadeError('port_in_use', `can't listen on ${host}:${port}: ${why}`, { cause: error }));
    });
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      const claimed = typeof address === 'object' && address ? address.port : port;
      server.close(() => resolve(claimed));
    });
  });
}
