/**
 * A way to Redis that can be cut: a node of the rehearsal reaches Redis through it, and nobody else does. While it is cut, it ends
 * every connection at once, and takes no new one.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface RedisProxy {
  /** As REDIS_URL, with the proxy in the place of Redis. */
  readonly url: string;
  cut(): void;
  join(): void;
  close(): Promise<void>;
}

const REDIS_PORT = 6_379;

/** @param redisUrl of one Redis, without TLS: a certificate would not name the proxy */
export async function openRedisProxy(redisUrl: string): Promise<RedisProxy> {
  const target = new URL(redisUrl);
  const host = target.hostname.replace(/^\[(.*)\]$/, '$1') || '127.0.0.1';
  const port = Number(target.port) || REDIS_PORT;
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = connect({ host, port, noDelay: true });
    near.setNoDelay(true);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(redisUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    cut() {
      isCut = true;
      end();
    },
    join() {
      isCut = false;
    },
    async close() {
      end();
      server.close();
      await once(server, 'close');
    },
  };
}
