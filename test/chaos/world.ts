/**
 * The system that faults strike: two `serve` processes and a `sync`, a Redis with an append-only file and a replica, a
 * Postgres. Each connection between two of them leads through a proxy of its own.
 *
 *   customers ──door──> serve 0, serve 1 ──redis──> Redis ──> replica
 *                          sync ────────────redis──┘
 *                          all three ──postgres──> Postgres
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import pg from 'pg';
import { BY } from '../support/author.ts';
import { startTestNode, type TestNode } from '../support/nodes/node.ts';
import { SyncProgram } from '../support/nodes/sync-program.ts';
import { TcpProxy } from '../support/servers/network/tcp-proxy.ts';
import type { PostgresServer } from '../support/servers/postgres-server.ts';
import { ServerStartError } from '../support/servers/process/server-process.ts';
import { RedisServer } from '../support/servers/redis-server.ts';
import { until } from '../support/until.ts';

const NODES = 2;
/** The lock of the process that makes the offers of all queues, as Postgres has it. */
const HEAD_LOCK = `hashtextextended('stockade:sale::queues', 0)`;
/** Must be long before any step of a clock. */
const LONG_OPEN = '2024-01-01T00:00:00Z';
const NOT_YET_OPEN = '2100-01-01T00:00:00Z';
const CLOCK = fileURLToPath(new URL('./clock.mjs', import.meta.url));
const KEY_PREFIX = 'stockade:chaos:';
/** The shell ignores SIGXFSZ, which would end a process whose file may not grow: the process gets an error instead. */
const HEEDS_FILE_LIMITS = ['/bin/sh', '-c', 'trap "" XFSZ; exec "$0" "$@"'] as const;
const OPS_TOKEN = 'the-token-of-a-world-that-ends-soon';
/** As systemd allows in ten seconds, with its usual settings. */
const MAX_STARTS = 5;
export const SALE = 'tickets';

/** The proxies behind one process, and its clock. */
export interface Ways {
  readonly redis: TcpProxy;
  readonly postgres: TcpProxy;
  /** Sets the process's clock ahead of the machine's by this much. */
  stepClock(ms: number): Promise<void>;
}

export interface Serving extends Ways {
  readonly node: TestNode;
  /** The address for customers. */
  readonly door: TcpProxy;
}

export interface Syncing extends Ways {
  readonly program: SyncProgram;
}

export interface SaleSpec {
  readonly stock: number;
  readonly segments: number;
  readonly limit: number;
  /** Missing: everybody buys at once. */
  readonly queue?: QueueSpec;
}

export interface QueueSpec {
  /** `draw`: the window is still to be opened, so that people can wait in the lobby. */
  readonly order: 'fifo' | 'draw';
  readonly offerSeconds: number;
  readonly presenceSeconds: number;
}

export class World implements AsyncDisposable {
  readonly postgres: PostgresServer;
  readonly databaseUrl: string;
  readonly sale: SaleSpec;
  readonly nodes: Serving[] = [];
  /** The server that takes the writes, and its replica. A failover swaps them. */
  primary!: RedisServer;
  replica!: RedisServer;
  sync!: Syncing;
  readonly #ends: (() => Promise<unknown>)[] = [];
  #folder = '';

  private constructor(postgres: PostgresServer, databaseUrl: string, sale: SaleSpec) {
    this.postgres = postgres;
    this.databaseUrl = databaseUrl;
    this.sale = sale;
  }

  /** A world on this Postgres, with an open sale. */
  static async open(postgres: PostgresServer, sale: SaleSpec): Promise<World> {
    const world = new World(postgres, await postgres.createDatabase('chaos'), sale);
    try {
      await world.#build();
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The settings of a further process in this world, which connects to the stores without proxies. */
  get settings(): Record<string, string> {
    const { primary, databaseUrl } = this;
    return { REDIS_URL: primary.productUrl, DATABASE_URL: databaseUrl, KEY_PREFIX, OPS_TOKEN };
  }

  /** All three processes. */
  get all(): Ways[] {
    return [...this.nodes, this.sync];
  }

  /** Sends a server a command directly, past Stockade. */
  async ask<T>(server: RedisServer, question: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(server.url, { maxRetriesPerRequest: 1 });
    redis.on('error', () => {});
    try {
      return await question(redis);
    } finally {
      redis.disconnect();
    }
  }

  /** The node that makes the offers: the one that Postgres sees holding the lock. @throws while none does */
  async head(): Promise<Serving> {
    const client = new pg.Client({ connectionString: this.databaseUrl });
    await client.connect();
    try {
      const found = await client.query<{ port: number }>(
        `SELECT client_port AS port FROM pg_locks JOIN pg_stat_activity USING (pid)
         WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32) | objid::bigint = ${HEAD_LOCK}
           AND datname = current_database()`,
      );
      const head = this.nodes.find(({ postgres }) => found.rows.some(({ port }) => postgres.leadsTo(port)));
      if (!head) throw new Error('no node makes offers');
      return head;
    } finally {
      await client.end();
    }
  }

  /** A further sync, connected to the stores without proxies. */
  anotherSync(): Promise<SyncProgram> {
    return SyncProgram.start(this.settings);
  }

  /** Starts a dead process again, behind the same proxies. */
  async revive({ node, door }: Serving): Promise<void> {
    await likeSupervisor(() => node.start());
    door.failOver(portOf(node.publicUrl));
  }

  async reviveSync(): Promise<void> {
    await likeSupervisor(() => this.sync.program.start());
  }

  /** Makes the replica the primary, and points the proxies to it. */
  async exchange(ways: readonly Ways[] = this.all): Promise<void> {
    for (const { redis } of ways) redis.failOver(this.replica.port);
    [this.primary, this.replica] = [this.replica, this.primary];
  }

  async follow(): Promise<void> {
    await this.ask(this.replica, (redis) => redis.replicaof('127.0.0.1', this.primary.port));
    await until(() => this.ask(this.replica, isInStep), {
      what: 'the replica is in step',
      timeoutMs: 30_000,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
  }

  async #build(): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'chaos-'));
    this.#ends.push(() => rm(this.#folder, { recursive: true }));
    this.primary = await this.#redis();
    this.replica = await this.#redis();
    await this.follow();
    for (let number = 0; number < NODES; number++) this.nodes.push(await this.#serving(number));
    this.sync = await this.#syncing();
    const { queue } = this.sale;
    await this.nodes[0]!.node.ops.create(
      {
        id: SALE,
        stock: this.sale.stock,
        segments: this.sale.segments,
        perBuyerLimit: this.sale.limit,
        startsAt: queue?.order === 'draw' ? NOT_YET_OPEN : LONG_OPEN,
        ...(queue && {
          queue: queue.order,
          offerSeconds: queue.offerSeconds,
          presenceSeconds: queue.presenceSeconds,
        }),
      },
      BY.actor,
    );
  }

  async #redis(): Promise<RedisServer> {
    const extraArgs = ['--appendfsync', 'everysec', '--repl-diskless-sync-delay', '0'];
    const server = await RedisServer.start({ appendonly: true, extraArgs, launcher: HEEDS_FILE_LIMITS });
    this.#ends.push(() => server[Symbol.asyncDispose]());
    return server;
  }

  async #serving(number: number): Promise<Serving> {
    const { ways, settings } = await this.#ways(`serve-${number}`);
    const { REDIS_URL, DATABASE_URL, OPS_TOKEN: _, ...env } = settings;
    const node = await startTestNode({
      redisUrl: REDIS_URL!,
      databaseUrl: DATABASE_URL!,
      keyPrefix: KEY_PREFIX,
      asShipped: true,
      env: { ...env, WORKERS: '1', SYNC: 'off' },
    });
    this.#ends.push(() => node[Symbol.asyncDispose]());
    const door = await this.#proxy(portOf(node.publicUrl));
    return { ...ways, node, door };
  }

  async #syncing(): Promise<Syncing> {
    const { ways, settings } = await this.#ways('sync');
    const program = await SyncProgram.start(settings);
    this.#ends.push(() => program[Symbol.asyncDispose]());
    return { ...ways, program };
  }

  async #ways(name: string): Promise<{ ways: Ways; settings: Record<string, string> }> {
    const redis = await this.#proxy(this.primary.port);
    const postgres = await this.#proxy(this.postgres.port);
    const clock = join(this.#folder, name);
    const stepClock = (ms: number) => writeFile(clock, String(ms));
    await stepClock(0);
    const settings = {
      ...this.settings,
      REDIS_URL: redis.through(this.primary.productUrl),
      DATABASE_URL: postgres.through(this.databaseUrl),
      NODE_OPTIONS: `--import=${CLOCK}`,
      CHAOS_CLOCK: clock,
    };
    return { ways: { redis, postgres, stepClock }, settings };
  }

  async #proxy(port: number): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(port);
    this.#ends.push(() => proxy.stop());
    return proxy;
  }
}

async function isInStep(redis: Redis): Promise<boolean> {
  const info = await redis.info('replication');
  return (
    /role:slave/.test(info) && /master_link_status:up/.test(info) && !/master_sync_in_progress:1/.test(info)
  );
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** A process that starts while another fault keeps it from a store ends again, and its supervisor starts it once more. */
async function likeSupervisor(start: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof ServerStartError) || attempt === MAX_STARTS) throw error;
    }
  }
}
