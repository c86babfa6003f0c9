import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the range from which Linux and macOS pick local ports for outgoing connections. So a server that is down for a while
 * finds its port free when it comes back: no client's connection occupies it, even if the client keeps trying to connect.
 */
const LOWEST_PORT = 20_000;
/** Each process of a test run has its own range, so that no port is found free by two processes. */
const PORTS_EACH = 3_000;
const PROCESSES = 4;
const FIRST_PORT = LOWEST_PORT + (Number(process.env.VITEST_POOL_ID ?? 0) % PROCESSES) * PORTS_EACH;
const MAX_ATTEMPTS = 100;

const handedOut = new Set<number>();

/** A free port on 127.0.0.1. Each call returns another one. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const port = randomInt(FIRST_PORT, FIRST_PORT + PORTS_EACH);
    if (handedOut.has(port) || !(await isFree(port))) continue;
    handedOut.add(port);
    return port;
  }
  throw new Error(
    `no free port found from ${FIRST_PORT} to ${FIRST_PORT + PORTS_EACH - 1} after ${MAX_ATTEMPTS} attempts`,
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
