import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the range from which Linux and macOS pick local ports for outgoing connections. So a server that is down for a while
 * finds its port free when it comes back: no client's connection occupies it, even if the client keeps trying to connect.
 */
const lowestPort = 20_000;
/** Each process of a test run has its own range, so that no port is found free by two processes. */
const portsEach = 3_000;
const parts = 4;
const firstPort = lowestPort + (Number(process.env.VITEST_POOL_ID ?? 0) % parts) * portsEach;
const portAttempts = 100;

const handedOut = new Set<number>();

/** A port on 127.0.0.1 that is free and that this process has not got before. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < portAttempts; attempt++) {
    const port = randomInt(firstPort, firstPort + portsEach);
    if (handedOut.has(port) || !(await isFree(port))) continue;
    handedOut.add(port);
    return port;
  }
  throw new Error(
    `no free port found from ${firstPort} to ${firstPort + portsEach - 1} after ${portAttempts} attempts`,
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
