import { type AddressInfo, createServer, type Server } from 'node:net';
import { cannotListen } from '../../http/server/listener.ts';

/**
 * Opens servers on a port that nobody else uses. The HTTP servers share a port among threads, and then the system lets other
 * processes share it too: without a check, two nodes could serve on one port by mistake, without any error, and each would get
 * a part of the buyers.
 *
 * The check binds the port alone, and frees it again for the servers. Until these listen, another node could pass the same
 * check. So the port's name is held meanwhile, too: a socket in the abstract namespace, which ends with its process. Other
 * systems than Linux have none, and there only the first check is made.
 *
 * @param port 0 for any free one
 * @param open opens the servers; the port is free for others again when they close
 * @throws StockadeError `port_in_use`, and the error of `open`
 */
export async function onOwnPort<T>(
  host: string,
  port: number,
  open: (port: number) => Promise<T>,
): Promise<T> {
  const probe = await listenAlone(host, port);
  const free = (probe.address() as AddressInfo).port;
  const name = createServer();
  try {
    const isFree = await holdName(name, `\0stockade-port:${host}:${free}`);
    await closed(probe);
    if (isFree) return await open(free);
  } finally {
    name.close();
  }
  if (port === 0) return onOwnPort(host, port, open);
  throw cannotListen(host, port, 'another node is about to listen there');
}

function listenAlone(host: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'something else listens there' : error.message;
      reject(cannotListen(host, port, why, error));
    });
    server.listen({ host, port, exclusive: true }, () => resolve(server));
  });
}

/** @returns false if another process holds the name */
function holdName(server: Server, name: string): Promise<boolean> {
  return new Promise((resolve) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'EADDRINUSE'));
    server.listen(name, () => resolve(true));
  });
}

const closed = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()));

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
