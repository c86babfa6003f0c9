/** The measurements: starts with both kinds of stores, then an idle node with many sales, then many idle connections. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { residentBytesOf } from '../../test/support/servers/process/process-table.ts';
import { Line } from '../support/crowd/line.ts';
import { BenchFailure } from '../support/failure.ts';
import { NodeProgram } from '../support/node-program.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import { type StoreServers, startStoreServers } from '../support/stores.ts';
import type { StartParameters } from './options.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const PGLITE = fileURLToPath(new URL('./pglite.mjs', import.meta.url));
const SEGMENTS = 8;
/** Connections are opened in groups, because the listener's queue is limited. */
const OPENED_AT_ONCE = 200;
/** Time for the node to come to rest: sync takes ten seconds to see that a sale is quiet. */
const REST_MS = 20_000;

/** From the start of the process to its line `ready`, in milliseconds; a start of each kind after the other. */
export interface Starts {
  /** With Redis and Postgres: in an empty database, and again. */
  readonly storesFirst: readonly number[];
  readonly storesAgain: readonly number[];
  /** Without any store: in an empty data folder, and again. */
  readonly embeddedFirst: readonly number[];
  readonly embeddedAgain: readonly number[];
  /** PGlite alone, likewise. */
  readonly pgliteFirst: readonly number[];
  readonly pgliteAgain: readonly number[];
}

export interface Idle {
  /** Milliseconds to create each sale, one after the other. */
  readonly createMs: readonly number[];
  /** Milliseconds of processor time per second. */
  readonly nodeMsPerSecond: number;
  readonly redisMsPerSecond: number;
  readonly postgresMsPerSecond: number;
}

/** Resident memory of the node, in bytes. */
export interface Memory {
  readonly before: number;
  readonly connected: number;
}

export interface Measured {
  readonly starts: Starts;
  readonly idle: Idle;
  readonly memory: Memory;
}

export async function measure(parameters: StartParameters): Promise<Measured> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    note('Starting Redis and Postgres');
    const stores = await startStoreServers(teardown);
    const starts = await measureStarts(stores, parameters.starts);
    const node = await StockadeNode.start(stores, {
      workers: 1,
      eventsStreamMax: 100_000,
      eventsYieldMs: 15_000,
    });
    teardown.add(() => node[Symbol.asyncDispose]());
    const idle = await measureIdle(stores, node, parameters);
    return { starts, idle, memory: await measureMemory(node, parameters.connections) };
  } finally {
    await teardown.release();
  }
}

async function measureStarts({ redis, postgres }: StoreServers, times: number): Promise<Starts> {
  const starts: Record<keyof Starts, number[]> = {
    ...{
      storesFirst: [],
      storesAgain: [],
      embeddedFirst: [],
      embeddedAgain: [],
      pgliteFirst: [],
      pgliteAgain: [],
    },
  };
  for (let i = 0; i < times; i++) {
    note(`start ${i + 1} of ${times}`);
    const folder = await mkdtemp(join(tmpdir(), 'stockade-start-'));
    try {
      const serve = (...more: string[]) => [
        MAIN,
        'serve',
        '--json',
        '--port',
        '0',
        '--ops-port',
        '0',
        ...more,
      ];
      const stores = ['--redis-url', redis.url, '--database-url', await postgres.createDatabase('start')];
      const withStores = serve(
        '--data-dir',
        join(folder, 'stores'),
        '--key-prefix',
        `start-${i}:`,
        ...stores,
      );
      const embedded = serve('--data-dir', join(folder, 'embedded'));
      const pglite = [PGLITE, join(folder, 'pglite')];
      for (const which of ['First', 'Again'] as const) {
        starts[`stores${which}`].push(await startMs(withStores));
        starts[`embedded${which}`].push(await startMs(embedded));
        starts[`pglite${which}`].push(await startMs(pglite));
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  return starts;
}

async function startMs(args: string[]): Promise<number> {
  const began = performance.now();
  await using _program = await NodeProgram.start('start', args);
  return performance.now() - began;
}

async function measureIdle(
  { redis, postgres }: StoreServers,
  node: StockadeNode,
  { sales, seconds }: StartParameters,
): Promise<Idle> {
  note(`Creating ${sales} sales`);
  const createMs: number[] = [];
  for (let i = 0; i < sales; i++) {
    const began = performance.now();
    await node.createSale({ id: `idle-${i}`, stock: 1_000, segments: SEGMENTS });
    createMs.push(performance.now() - began);
  }
  note(`Watching the idle node for ${seconds} s`);
  await delay(REST_MS);
  const used = () => [node.cpuSeconds(), redis.cpuSeconds(), postgres.cpuSeconds()];
  const [before, began] = [used(), performance.now()];
  await delay(seconds * 1_000);
  const tookSeconds = (performance.now() - began) / 1_000;
  const [nodeMsPerSecond, redisMsPerSecond, postgresMsPerSecond] = used().map(
    (now, i) => ((now - before[i]!) * 1_000) / tookSeconds,
  ) as [number, number, number];
  return { createMs, nodeMsPerSecond, redisMsPerSecond, postgresMsPerSecond };
}

async function measureMemory(node: StockadeNode, connections: number): Promise<Memory> {
  note(`Opening ${connections} connections`);
  const before = residentBytesOf(node.pid);
  const { hostname, port } = new URL(node.publicUrl);
  const lines = Array.from({ length: connections }, () => new Line(hostname, Number(port)));
  try {
    for (let i = 0; i < lines.length; i += OPENED_AT_ONCE)
      await Promise.all(lines.slice(i, i + OPENED_AT_ONCE).map(askOnce));
    return { before, connected: residentBytesOf(node.pid) };
  } finally {
    for (const line of lines) line.close();
  }
}

/** A request on each connection, so that the node has read from it. */
function askOnce(line: Line): Promise<void> {
  return new Promise((resolve, reject) => {
    line.ask('GET /v1/sales/idle-0 HTTP/1.1\r\nHost: localhost\r\n\r\n', ({ code }) => {
      if (code === 'broken') reject(new BenchFailure('the node has closed a connection'));
      else resolve();
    });
  });
}
