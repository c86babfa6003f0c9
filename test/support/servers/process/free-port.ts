import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';

/**
 * Below the range from which Linux and macOS pick local ports for outgoing connections. So a server that is down for a while
 * finds its port free when it comes back: no client's connection occupies it, even if the client keeps trying to connect.
 */
const LOWEST_PORT = 20_000;
const PORTS = 12_000;
/** The most that run tests at the same time (vitest.config.ts), and the one that has started them. */
const PROCESSES = 3 * availableParallelism() + 1;
/**
 * Each process of a test run has its own range. So no port is found free by two processes, and no process takes the port of another
 * one's server that is down for a while.
 */
const PORTS_EACH = Math.floor(PORTS / PROCESSES);
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
