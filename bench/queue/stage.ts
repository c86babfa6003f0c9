/** The servers of a run: stores, one node, the echo server, and a connection to the node's database. */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { note } from '../../src/cli/terminal/output.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { freePort } from '../../test/support/servers/process/free-port.ts';
import { type Load, type Measurement, measureAnswered } from '../http/measure.ts';
import { NodeProgram } from '../support/node-program.ts';
import { type BenchSale, StockadeNode } from '../support/stockade-node.ts';
import { checkpoint, NO_REWRITE_OF_AOF, type StoreServers, startStoreServers } from '../support/stores.ts';
import type { QueueParameters } from './options.ts';

const ECHO_SERVER = fileURLToPath(new URL('../http/echo-server.mjs', import.meta.url));
const DATABASE_CONNECTIONS = 4;
/** MAX_CONNECTIONS without a setting. */
const DEFAULTS_CONNECTIONS = 16_000;

export class Stage {
  readonly stores: StoreServers;
  readonly node: StockadeNode;
  readonly db: Database;
  readonly keyPrefix: string;
  readonly parameters: QueueParameters;
  readonly #echo: { readonly program: NodeProgram<unknown>; readonly port: number };

  private constructor(
    parts: Pick<Stage, 'stores' | 'node' | 'db' | 'keyPrefix' | 'parameters'>,
    echo: { readonly program: NodeProgram<unknown>; readonly port: number },
  ) {
    this.stores = parts.stores;
    this.node = parts.node;
    this.db = parts.db;
    this.keyPrefix = parts.keyPrefix;
    this.parameters = parts.parameters;
    this.#echo = echo;
  }

  static async start(parameters: QueueParameters, teardown: Teardown): Promise<Stage> {
    note('Starting Redis, Postgres, the node and the echo server');
    const stores = await startStoreServers(teardown, ...NO_REWRITE_OF_AOF);
    const databaseUrl = await stores.postgres.createDatabase('bench');
    const keyPrefix = `bench-${randomBytes(6).toString('hex')}:`;
    const { workers, listeners, connections } = parameters;
    // Events are off as in bench:latency: their delivery is measured by bench:http.
    const maxConnections = Math.max(DEFAULTS_CONNECTIONS, 2 * Math.max(listeners, connections));
    const flags = {
      ...{ 'key-prefix': keyPrefix, 'public-payment': '1' },
      'max-connections': String(maxConnections),
    };
    const settings = { workers, databaseUrl, eventsStreamMax: 0, eventsYieldMs: 0, flags };
    const node = await StockadeNode.start(stores, settings);
    teardown.add(() => node[Symbol.asyncDispose]());
    const db = openDatabase({ url: databaseUrl, maxConnections: DATABASE_CONNECTIONS, queryTimeoutMs: 0 });
    teardown.add(() => db.destroy());
    const port = await freePort();
    const program = await NodeProgram.start('echo', [ECHO_SERVER, String(workers), String(port)]);
    teardown.add(() => program[Symbol.asyncDispose]());
    return new Stage({ stores, node, db, keyPrefix, parameters }, { program, port });
  }

  async createSale(sale: Omit<BenchSale, 'segments'>): Promise<void> {
    await this.node.createSale({ ...sale, segments: this.parameters.segments });
  }

  echo(): Promise<Measurement> {
    const url = `http://127.0.0.1:${this.#echo.port}/v1/sales/echo/orders`;
    // The stores' own work meanwhile does not count for the echo.
    const cpu = { node: () => this.#echo.program.cpuSeconds(), redis: () => 0, postgres: () => 0 };
    return measureAnswered({ ...this.#load(), url, cpu });
  }

  /** A load of wrk on the node, after a checkpoint. */
  async load(load: Pick<Load, 'url'> & Partial<Load>): Promise<Measurement> {
    await checkpoint(this.stores.postgres);
    return measureAnswered({ ...this.#load(), cpu: this.cpu, ...load });
  }

  get cpu(): Load['cpu'] {
    const { node, stores } = this;
    return {
      node: () => node.cpuSeconds(),
      redis: () => stores.redis.cpuSeconds(),
      postgres: () => stores.postgres.cpuSeconds(),
    };
  }

  placeUrl(saleId: string): string {
    return `${this.node.publicUrl}/v1/sales/${saleId}/place`;
  }

  /** Bytes that Redis uses. */
  async redisBytes(): Promise<number> {
    const admin = new Redis(this.stores.redis.url);
    try {
      return Number(/^used_memory:(\d+)/m.exec(await admin.info('memory'))![1]);
    } finally {
      admin.disconnect();
    }
  }

  #load() {
    const { connections, seconds } = this.parameters;
    return { connections, seconds, warmupSeconds: 1, prefer: '' };
  }
}
