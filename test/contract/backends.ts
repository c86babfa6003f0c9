/**
 * One suite, every backend: what is written with `onEachBackend` runs on each of them, and after each test the units
 * of every sale are counted.
 */
import { afterEach, beforeEach, describe } from 'vitest';
import { openRedis } from '../../src/engine/cluster/open-redis.ts';
import type { Backend, Sale } from '../../src/engine/contract.ts';
import { MAX_BATCH_ORDERS } from '../../src/engine/limits.ts';
import { LockedBackend } from '../../src/engine/locked/locked-backend.ts';
import { MemoryBackend } from '../../src/engine/memory/memory-backend.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { freshPrefix, redisUrl } from '../support/fixtures.ts';
import { LONG_TIMEOUTS } from '../support/long-timeouts.ts';
import { RedisCluster } from '../support/servers/redis-cluster.ts';
import { aSale, type LoadedSale, type LoadOptions, loadSale } from '../support/shop/sales.ts';

interface Kind {
  readonly name: string;
  open(): Promise<Backend>;
}

const CLUSTER = 'redis cluster';
const LOCKED_CLUSTER = 'redis cluster, under locks';

/** One batch of the largest size fills a log. */
export const MAX_LOG_ORDERS = MAX_BATCH_ORDERS;

const BACKENDS: readonly Kind[] = [
  { name: 'memory', open: async () => new MemoryBackend({ maxLogOrders: MAX_LOG_ORDERS }) },
  {
    name: 'redis',
    open: () =>
      RedisBackend.open({
        url: redisUrl(),
        keyPrefix: freshPrefix(),
        takeTimeoutMs: LONG_TIMEOUTS.takeTimeoutMs,
        maxLogOrders: MAX_LOG_ORDERS,
      }),
  },
  {
    name: 'redis, under locks',
    open: () =>
      LockedBackend.open({
        urls: [redisUrl()],
        keyPrefix: freshPrefix(),
        takeTimeoutMs: LONG_TIMEOUTS.takeTimeoutMs,
        maxLogOrders: MAX_LOG_ORDERS,
        inside: async () => [],
      }),
  },
  {
    name: LOCKED_CLUSTER,
    open: async () =>
      LockedBackend.open({
        urls: await clusterUrls(),
        keyPrefix: freshPrefix(),
        takeTimeoutMs: LONG_TIMEOUTS.takeTimeoutMs,
        maxLogOrders: MAX_LOG_ORDERS,
        inside: async () => [],
      }),
  },
  {
    name: CLUSTER,
    open: async () => {
      const options = {
        keyPrefix: freshPrefix(),
        takeTimeoutMs: LONG_TIMEOUTS.takeTimeoutMs,
        maxLogOrders: MAX_LOG_ORDERS,
      };
      return (await openRedis({ urls: await clusterUrls(), ...options })).backend;
    },
  },
];

let cluster: Promise<RedisCluster> | undefined;

/** One cluster for the files of a process, started by the first test that needs it. It ends with the process. */
async function clusterUrls(): Promise<readonly string[]> {
  cluster ??= RedisCluster.start();
  return (await cluster).urls;
}

export function onEachBackend(tests: (stage: Stage) => void): void {
  describe.each(BACKENDS)('$name', ({ name, open }) => {
    const stage = new Stage(name === CLUSTER || name === LOCKED_CLUSTER);
    beforeEach(async () => stage.begin(await open()));
    afterEach(() => stage.end());
    tests(stage);
  });
}

/** A test's backend, and the sales that it has put there. */
export class Stage {
  /** Whether segments are on several servers, so that no step of a sale sees all of them at once. */
  readonly isScattered: boolean;
  #backend: Backend | undefined;
  #loaded: LoadedSale[] = [];

  constructor(isScattered: boolean) {
    this.isScattered = isScattered;
  }

  get backend(): Backend {
    if (!this.#backend) throw new Error('no test is running');
    return this.#backend;
  }

  async load(spec: Partial<Sale> = {}, options: LoadOptions = {}): Promise<LoadedSale> {
    const split = options.split;
    const fromSplit = split && {
      segments: split.length,
      stock: split.reduce((sum, units) => sum + units, 0),
    };
    const loaded = await loadSale(this.backend, aSale({ ...fromSplit, ...spec }), options);
    this.#loaded.push(loaded);
    return loaded;
  }

  /** The units of this sale are not counted after the test. */
  uncount(loaded: LoadedSale): void {
    this.#loaded = this.#loaded.filter((other) => other !== loaded);
  }

  /** Replaces the sale by a new generation. The units of the old one are not counted after the test. */
  async reload(old: LoadedSale, options: LoadOptions): Promise<LoadedSale> {
    this.uncount(old);
    const loaded = await loadSale(this.backend, old.sale, { generation: old.generation + 1, ...options });
    this.#loaded.push(loaded);
    return loaded;
  }

  begin(backend: Backend): void {
    this.#backend = backend;
    this.#loaded = [];
  }

  async end(): Promise<void> {
    try {
      for (const loaded of this.#loaded) await loaded.expectConserved();
    } finally {
      await this.#backend?.close();
    }
  }
}
