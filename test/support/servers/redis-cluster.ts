/**
 * A Redis Cluster for one test: three primaries with a third of the slots each, with or without replicas. The servers can be put
 * behind proxies. They then name the proxies' ports to clients, so that every command goes through a proxy.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { findServer } from '../../../scripts/servers.mjs';
import { asUser, REDIS_PASSWORD, REDIS_USER } from '../postgres/least-rights.ts';
import type { Certificate } from './certificates.ts';
import { TcpProxy } from './network/tcp-proxy.ts';
import { freePort } from './process/free-port.ts';
import { RedisServer } from './redis-server.ts';

const SLOTS = 16_384;
const PRIMARIES = 3;
const READY_LIMIT_MS = 60_000;
const POLL_MS = 20;
const MIGRATE_MS = 5_000;
/** It prints a line or more for each slot. */
const FIX_OUTPUT_BYTES = 64 * 1024 ** 2;

/** What happens while a slot moves. */
export interface DuringMove {
  announced?(): Promise<void>;
  moved?(): Promise<void>;
}

export interface RedisClusterOptions {
  /** Also start a replica of each primary. Default false. */
  readonly replicas?: boolean;
  /** A proxy in front of each primary. Default false. */
  readonly proxied?: boolean;
  /** Milliseconds until a silent server counts as failed. Default 30,000, longer than any machine stalls. */
  readonly nodeTimeoutMs?: number;
  /** Enables TLS, also between the servers. */
  readonly certificate?: Certificate;
  /** More arguments for each redis-server. */
  readonly extraArgs?: readonly string[];
}

export class RedisCluster implements AsyncDisposable {
  readonly primaries: RedisServer[];
  readonly replicas: readonly RedisServer[];
  /** One for each primary, in the same order; empty if not requested. */
  readonly proxies: readonly TcpProxy[];

  private constructor(parts: Pick<RedisCluster, 'primaries' | 'replicas' | 'proxies'>) {
    this.primaries = parts.primaries;
    this.replicas = parts.replicas;
    this.proxies = parts.proxies;
  }

  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { replicas: withReplicas = false, proxied = false } = options;
    const primaries = await startAll(PRIMARIES, options);
    const replicas = withReplicas ? await startAll(PRIMARIES, options) : [];
    const proxies = proxied ? await Promise.all(primaries.map(({ port }) => TcpProxy.start(port))) : [];
    const cluster = new RedisCluster({ primaries, replicas, proxies });
    try {
      await cluster.#form();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Clients of all primaries as the product's user, through the proxies if there are any. */
  get urls(): string[] {
    const ports = this.proxies.length > 0 ? this.proxies : this.primaries;
    return ports.map(({ port }) => `redis://${REDIS_USER}:${REDIS_PASSWORD}@127.0.0.1:${port}`);
  }

  /** The same as the administrator. */
  get adminUrls(): string[] {
    return this.urls.map((url) => asUser(url, ''));
  }

  /** The value for REDIS_URL. */
  get url(): string {
    return `redis://${REDIS_USER}:${REDIS_PASSWORD}@${this.urls.map((url) => new URL(url).host).join(',')}`;
  }

  /** The value for REDIS_URL over TLS. */
  get tlsUrl(): string {
    const [first, ...others] = this.primaries.map(({ tlsUrl }) => new URL(tlsUrl));
    const servers = [first!, ...others].map(({ host }) => host).join(',');
    return first!.href.replace(first!.host, servers);
  }

  /** The number of the primary that has this key. */
  async primaryOf(key: string): Promise<number> {
    const slot = Number(await onServer(this.primaries[0]!, (redis) => redis.cluster('KEYSLOT', key)));
    return Math.min(PRIMARIES - 1, Math.floor(slot / sliceOf()));
  }

  /** Whether a primary's replica has everything that the primary has written by now. */
  async isReplicated(primary: number): Promise<boolean> {
    const [written, received] = await Promise.all(
      [this.primaries[primary]!, this.replicas[primary]!].map((server) =>
        onServer(server, async (redis) => {
          const info = await redis.info('replication');
          return Number(/^master_repl_offset:(\d+)/m.exec(info)?.[1]);
        }),
      ),
    );
    return received! >= written!;
  }

  /** The number of the primary that has this slot now, as this primary knows. */
  async ownerOf(slot: number, asked = 0): Promise<number> {
    const ranges = (await onServer(this.primaries[asked]!, (redis) =>
      redis.cluster('SLOTS'),
    )) as unknown as SlotRange[];
    const range = ranges.find(([first, last]) => first <= slot && slot <= last);
    return this.primaries.findIndex(({ port }) => port === range?.[2][1]);
  }

  /** Adds a primary without slots. @returns its number */
  async addPrimary(): Promise<number> {
    const [server] = await startAll(1, {});
    this.primaries.push(server!);
    const [first] = this.primaries;
    await onServer(server!, (redis) =>
      redis.call('CLUSTER', 'MEET', '127.0.0.1', first!.port, busOf(first!)),
    );
    await this.#until('the new primary is known', async () => this.#agree(this.primaries));
    return this.primaries.length - 1;
  }

  /** `ok` or `fail`: whether the cluster serves, as this primary sees it. */
  async stateSeenBy(primary: number): Promise<string | undefined> {
    const info = await onServer(
      this.primaries[primary]!,
      (redis) => redis.cluster('INFO') as Promise<string>,
    );
    return /cluster_state:(\w+)/.exec(info)?.[1];
  }

  /** Gives the slots of primaries that can't be reached to the others, without keys, as an operator does. @returns the output */
  async giveSlotsOfLostPrimaries(): Promise<string> {
    const cli = join(findServer('redis')!, 'redis-cli');
    const address = `127.0.0.1:${this.primaries[0]!.port}`;
    const fix = ['--cluster', 'fix', address, '--cluster-fix-with-unreachable-masters', '--cluster-yes'];
    const running = promisify(execFile)(cli, fix, { maxBuffer: FIX_OUTPUT_BYTES });
    // It asks once more, in spite of `--cluster-yes`.
    running.child.stdin!.end('yes\n');
    return (await running).stdout;
  }

  /** How often a primary has refused a command with this error, for example `ASK`. */
  async errorsOf(primary: number, name: string): Promise<number> {
    const stats = await onServer(this.primaries[primary]!, (redis) => redis.info('errorstats'));
    return Number(new RegExp(`^errorstat_${name}:count=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  }

  /**
   * Moves a slot with all its keys from one primary to another, as an operator does.
   * @param during `announced` is called when both servers know of the move and the keys are at the old one; `moved` when the keys are
   * at the new server and the slot still belongs to the old one
   */
  async moveSlot(slot: number, from: number, to: number, during: DuringMove = {}): Promise<void> {
    const [source, target] = [this.primaries[from]!, this.primaries[to]!];
    const [sourceId, targetId] = await Promise.all(
      [source, target].map((server) => onServer(server, (redis) => redis.call('CLUSTER', 'MYID'))),
    );
    const set = (server: RedisServer, ...words: string[]) =>
      onServer(server, (redis) => redis.call('CLUSTER', 'SETSLOT', slot, ...words));
    await set(target, 'IMPORTING', String(sourceId));
    await set(source, 'MIGRATING', String(targetId));
    await during.announced?.();
    await onServer(source, async (redis) => {
      const keys = (await redis.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
      const where = ['127.0.0.1', target.port, '', 0, MIGRATE_MS] as const;
      if (keys.length > 0) await redis.call('MIGRATE', ...where, 'KEYS', ...keys);
    });
    await during.moved?.();
    for (const server of [target, source, ...this.primaries]) await set(server, 'NODE', String(targetId));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.stop()));
    await Promise.all([...this.primaries, ...this.replicas].map((server) => server[Symbol.asyncDispose]()));
  }

  async #form(): Promise<void> {
    const [first] = this.primaries;
    for (const [i, server] of this.primaries.entries()) {
      const [from, to] = [i * sliceOf(), i === PRIMARIES - 1 ? SLOTS - 1 : (i + 1) * sliceOf() - 1];
      await onServer(server, async (redis) => {
        await redis.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
        await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
        const proxy = this.proxies[i];
        if (proxy) await redis.config('SET', 'cluster-announce-port', proxy.port);
      });
    }
    for (const server of [...this.primaries, ...this.replicas]) {
      await onServer(server, (redis) =>
        redis.call('CLUSTER', 'MEET', '127.0.0.1', first!.port, busOf(first!)),
      );
    }
    await this.#until('the primaries know each other', async () => this.#agree(this.primaries));
    for (const [i, replica] of this.replicas.entries()) {
      const id = String(await onServer(this.primaries[i]!, (redis) => redis.cluster('MYID')));
      await this.#until('a replica knows its primary', () =>
        onServer(replica, (redis) => redis.cluster('REPLICATE', id)).then(Boolean, () => false),
      );
    }
    if (this.replicas.length > 0) {
      await this.#until('replicas are in step', async () => {
        const infos = await Promise.all(
          this.primaries.map((server) => onServer(server, (redis) => redis.info('replication'))),
        );
        return infos.every((info) => info.includes('state=online'));
      });
    }
    await this.#until('all servers agree', async () => this.#agree([...this.primaries, ...this.replicas]));
  }

  async #agree(servers: readonly RedisServer[]): Promise<boolean> {
    const infos = await Promise.all(
      servers.map((server) => onServer(server, (redis) => redis.cluster('INFO') as Promise<string>)),
    );
    const known = `cluster_known_nodes:${this.primaries.length + this.replicas.length}`;
    return infos.every((info) => info.includes('cluster_state:ok') && info.includes(known));
  }

  async #until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + READY_LIMIT_MS;
    while (!(await condition())) {
      if (Date.now() > deadline) throw new Error(`not within ${READY_LIMIT_MS} ms: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

type SlotRange = [first: number, last: number, primary: [host: string, port: number, ...unknown[]]];

function sliceOf(): number {
  return Math.floor(SLOTS / PRIMARIES);
}

const busPorts = new WeakMap<RedisServer, number>();

function busOf(server: RedisServer): number {
  return busPorts.get(server)!;
}

async function startAll(
  count: number,
  { nodeTimeoutMs = 30_000, certificate, extraArgs: more = [] }: RedisClusterOptions,
): Promise<RedisServer[]> {
  const starts = await Promise.allSettled(
    Array.from({ length: count }, async () => {
      // Otherwise the bus would take the port plus 10,000, which another program may use.
      const busPort = await freePort();
      const settings = {
        'cluster-enabled': 'yes',
        'cluster-node-timeout': nodeTimeoutMs,
        'cluster-port': busPort,
        // A primary waits 5 s for more replicas before it sends its data to the first.
        'repl-diskless-sync-delay': 0,
      };
      const extraArgs = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
      const server = await RedisServer.start({
        appendonly: true,
        extraArgs: [...extraArgs, ...more],
        ...(certificate && { certificate }),
      });
      busPorts.set(server, busPort);
      return server;
    }),
  );
  const servers = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const failed = starts.find((start) => start.status === 'rejected');
  if (failed) {
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
    throw failed.reason;
  }
  return servers;
}

async function onServer<T>(server: RedisServer, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(server.url);
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
