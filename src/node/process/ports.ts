import { type AddressInfo, createServer, type Server } from 'node:net';
import { StockadeError } from '../../engine/errors.ts';

/**
 * Checks that a port is free, or finds a free one. The HTTP servers share a port among threads, and then the system lets
 * other processes share it too: without this check, two nodes could serve on one port by mistake, without any error.
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

/**
 * Whether several `node:http` servers, each in its own thread, may listen on one port. They may on Linux, from Node 22.12
 * and 23.1. Older versions don't know the option, and other systems refuse it.
 */
export async function canShareNodePorts(host: string): Promise<boolean> {
  const servers = [createServer(), createServer()] as const;
  try {
    const port = await listenShared(servers[0], host, 0);
    await listenShared(servers[1], host, port);
    return true;
  } catch {
    return false;
  } finally {
    for (const server of servers) server.close();
  }
}

function listenShared(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const options = { host, port, exclusive: true, reusePort: true };
    server.listen(options, () => resolve((server.address() as AddressInfo).port));
  });
}
