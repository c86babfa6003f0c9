/** The run: starts servers and a node, applies the load, takes samples, and checks what is left afterwards. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { note } from '../../src/cli/terminal/output.ts';
import { monotonicMs } from '../../src/lib/monotonic.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { BenchFailure } from '../support/failure.ts';
import { answered } from '../support/metrics-text.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import { startStoreServers } from '../support/stores.ts';
import { Deeds, type Sales } from './deeds.ts';
import type { SoakParameters } from './options.ts';
import { type Sample, type Sampled, tablesOf, takeSample } from './samples.ts';

const TICK_MS = 10;
const STOCK = 1_000_000;
const SEGMENTS = 8;
/** Unpaid orders expire, so that expiries are part of the load. */
const PAY_WITHIN_SECONDS = 20;
/** So small that the stream of events is full, and trimmed, soon after the start. */
const EVENTS_STREAM_MAX = 5_000;
/** Requests that may be under way. More means that the node does not keep up, so the load would not be steady. */
const MOST_UNDER_WAY = 2_000;
/** Time until everything that the load leaves behind is gone: idle connections, pools, returns, events. */
const LIMIT_MS = 120_000;
const POLL_MS = 200;
/** The time between samples that follow a garbage collection. */
const COLLECT_EVERY_S = 60;
/** Time for every thread of the node to collect its garbage. */
const COLLECTING_MS = 1_000;
const COLLECT = new URL('./collect.mjs', import.meta.url).href;
const WEEK_MS = 7 * 24 * 3_600_000;

export interface Soak {
  readonly samples: readonly Sample[];
  /** Samples before the load, and after everything that it left was gone. */
  readonly before: Sample;
  readonly after: Sample;
  readonly orders: number;
  readonly deeds: number;
  readonly sales: number;
  readonly answers: ReadonlyMap<string, number>;
  readonly tables: Awaited<ReturnType<typeof tablesOf>>;
  readonly seconds: number;
}

/** @throws BenchFailure if an answer was wrong, something stays behind, or verify finds a fault */
export async function soak(parameters: SoakParameters): Promise<Soak> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const sampled = await start(parameters, teardown);
    try {
      return await underLoad(sampled, parameters);
    } catch (error) {
      note(`The node: ${await sampled.node.lastWords()}`);
      throw error;
    }
  } finally {
    await teardown.release();
  }
}

async function start({ workers }: SoakParameters, teardown: Teardown): Promise<Sampled> {
  note('Starting Redis, Postgres, a webhook and the node');
  const stores = await startStoreServers(teardown);
  const databaseUrl = await stores.postgres.createDatabase('soak');
  const webhook = await startWebhook(teardown);
  const node = await StockadeNode.start(stores, {
    workers,
    eventsStreamMax: EVENTS_STREAM_MAX,
    eventsYieldMs: 1_000,
    databaseUrl,
    flags: { 'webhook-url': webhook },
    env: { WEBHOOK_SECRET: 'a secret of the soak', NODE_OPTIONS: `--import=${COLLECT}` },
  });
  teardown.add(() => node[Symbol.asyncDispose]());
  const redis = new Redis(stores.redis.url);
  teardown.add(() => redis.quit());
  const db = openDatabase({ url: databaseUrl, maxConnections: 1 });
  teardown.add(() => db.destroy());
  return { node, redis, db };
}

/** Accepts every event and stores none. */
async function startWebhook(teardown: Teardown): Promise<string> {
  const server: Server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(204).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  teardown.add(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`;
}

async function underLoad(sampled: Sampled, parameters: SoakParameters): Promise<Soak> {
  const { node, db } = sampled;
  const shop = await Shop.open(node);
  await node.settled();
  await collect(node);
  const before = await takeSample(sampled, 0);
  const deeds = new Deeds(node, parameters.seed);
  const began = monotonicMs();
  const elapsed = () => (monotonicMs() - began) / 1_000;
  const endS = parameters.minutes * 60 + parameters.seconds;
  note(`${endS} s of ${parameters.rate} requests/s, seed ${parameters.seed}`);
  const [samples, count] = await Promise.all([
    sampleUntil(endS, elapsed, sampled, parameters),
    load(endS, elapsed, { deeds, shop, parameters }),
    shop.renewUntil(endS, elapsed, parameters.saleSeconds),
  ]);
  await deeds[Symbol.asyncDispose]();
  deeds.assertSound();
  const after = await untilGone(before, sampled, elapsed);
  await verifyAll(node, shop.saleIds);
  return {
    samples,
    before,
    after,
    orders: deeds.orders,
    deeds: count,
    sales: shop.saleIds.length,
    answers: deeds.answers,
    tables: await tablesOf(db),
    seconds: endS,
  };
}

interface LoadParts {
  readonly deeds: Deeds;
  readonly shop: Shop;
  readonly parameters: SoakParameters;
}

/**
 * Runs an open loop: a request begins at its time, whatever happens to earlier ones. @returns the number of requests
 */
async function load(endS: number, elapsed: () => number, parts: LoadParts): Promise<number> {
  const { deeds, shop, parameters } = parts;
  const underWay = new Set<Promise<void>>();
  let begun = 0;
  for (let now = 0; now < endS; now = elapsed()) {
    for (; begun < now * parameters.rate; begun++) {
      if (underWay.size >= MOST_UNDER_WAY)
        throw new BenchFailure(`the node does not keep up with ${parameters.rate} requests/s`);
      const deed: Promise<void> = deeds.next(shop.sales).finally(() => underWay.delete(deed));
      underWay.add(deed);
    }
    await delay(TICK_MS);
  }
  await Promise.all(underWay);
  return begun;
}

async function sampleUntil(
  endS: number,
  elapsed: () => number,
  sampled: Sampled,
  { sampleSeconds }: SoakParameters,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  let collectAt = COLLECT_EVERY_S;
  for (let next = sampleSeconds; next <= endS; next += sampleSeconds) {
    await delay(Math.max(0, next - elapsed()) * 1_000);
    if (elapsed() >= collectAt) {
      await collect(sampled.node);
      collectAt += COLLECT_EVERY_S;
    }
    const sample = await takeSample(sampled, elapsed());
    samples.push(sample);
    if (samples.length % 12 === 0) note(`${Math.round(sample.seconds)} s: ${JSON.stringify(sample)}`);
  }
  return samples;
}

/** After this, a sample shows the heaps without garbage. */
async function collect(node: StockadeNode): Promise<void> {
  process.kill(node.pid, 'SIGUSR2');
  await delay(COLLECTING_MS);
}

/**
 * The sales of the soak: one that is sold out, one that has not started, and one that sells, replaced from time to
 * time.
 */
class Shop {
  readonly saleIds: string[] = ['sold-out', 'not-started'];
  readonly #node: StockadeNode;
  #open = 0;

  private constructor(node: StockadeNode) {
    this.#node = node;
  }

  static async open(node: StockadeNode): Promise<Shop> {
    const shop = new Shop(node);
    await node.createSale({ id: 'sold-out', stock: 1, segments: SEGMENTS });
    await node.sellOut('sold-out');
    const startsAt = new Date(Date.now() + WEEK_MS).toISOString();
    await node.createSale({ id: 'not-started', stock: 1, segments: SEGMENTS, startsAt });
    await shop.#next();
    return shop;
  }

  get sales(): Sales {
    return { open: `sale-${this.#open}`, soldOut: 'sold-out', notStarted: 'not-started' };
  }

  async renewUntil(endS: number, elapsed: () => number, saleSeconds: number): Promise<void> {
    for (let next = saleSeconds; next < endS; next += saleSeconds) {
      await delay(Math.max(0, next - elapsed()) * 1_000);
      await this.#next();
      // Orders of the closed sale may still be paid, cancelled and repeated.
      if (this.#open > 2) await this.#node.closeSale(`sale-${this.#open - 2}`);
    }
  }

  async #next(): Promise<void> {
    const id = `sale-${this.#open + 1}`;
    const payWithinSeconds = PAY_WITHIN_SECONDS;
    await this.#node.createSale({ id, stock: STOCK, segments: SEGMENTS, payWithinSeconds });
    this.saleIds.push(id);
    this.#open++;
  }
}

/**
 * Waits until the buyers' connections are gone, nothing is waiting anywhere, and the node has as many handles as before. Its
 * connections to the stores don't count: pools open and close them as needed.
 */
async function untilGone(before: Sample, sampled: Sampled, elapsed: () => number): Promise<Sample> {
  const own = ({ handles, redisClients, postgresConnections }: Sample) =>
    handles - redisClients - postgresConnections;
  const deadline = monotonicMs() + LIMIT_MS;
  let silent = -1;
  let isCollected = false;
  for (;;) {
    const total = answered(await sampled.node.figures());
    const now = await takeSample(sampled, elapsed());
    const isGone = now.connections === 0 && now.waitingRows === 0 && now.underWay === 0;
    if (isGone && total === silent && own(now) <= own(before)) {
      if (isCollected) return now;
      await collect(sampled.node);
      isCollected = true;
    }
    silent = total;
    if (monotonicMs() > deadline)
      throw new BenchFailure(
        `not gone within ${LIMIT_MS} ms of the end of the load: ${JSON.stringify({ before, now })}`,
      );
    await delay(POLL_MS);
  }
}

async function verifyAll(node: StockadeNode, saleIds: readonly string[]): Promise<void> {
  note(`Verifying ${saleIds.length} sales`);
  for (const saleId of saleIds) await node.assertVerified(saleId);
}
