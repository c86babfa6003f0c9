/** Some nodes of one shop, and crowds that buy from all of them at once. */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { settings } from '../../src/config/settings.ts';
import { splitEvenly } from '../../src/engine/sale/split-evenly.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { endedChildrenCpuSecondsOf } from '../../test/support/servers/process/process-table.ts';
import { measureCpu } from '../support/cpu-meter.ts';
import { meanBatch, type NodeFigures, together } from '../support/metrics-text.ts';
import { settled } from '../support/settled.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import { checkpoint } from '../support/stores.ts';
import { rightAnswers } from '../support/wrk/right-answers.ts';
import { runWrk } from '../support/wrk/wrk.ts';
import { type ConnectionsWanted, connectionsForTakes, measuredWithTakes } from './equal-batches.ts';
import type { ScaleParameters } from './options.ts';
import type { ShopSize } from './points.ts';
import type { Place } from './stores.ts';

const SCRIPT = fileURLToPath(new URL('../support/wrk/order-request.lua', import.meta.url));
const NEVER_SOLD_OUT = 50_000_000;
const EVENTS_YIELD_MS = Number(settings.eventsYieldMs.fallback);
/** Each with its own buyers and its own lanes: more than one would be another way of having more nodes. */
const WORKERS = 1;
/** Additional time for the end of a node, on busy cores. */
const NODE_END_MS = 60_000;
/** A stall of the machine must not turn a commit into an `accepted`. */
const DEADLINE_MS = '30000';
/** Processor time is in microseconds per committed order; `undefined` where the system does not report it. */
export interface Measurement {
  /** To all nodes together. */
  readonly connections: number;
  readonly ordersPerSecond: number;
  readonly nodeCpuMicros: number | undefined;
  readonly redisCpuMicros: number | undefined;
  readonly postgresCpuMicros: number | undefined;
  /** Of these three together: wrk is not part of a shop. */
  readonly cpuMicros: number | undefined;
  /** Orders in each script call, and in each transaction of sync. */
  readonly takeOrders: number | undefined;
  readonly transactionOrders: number | undefined;
}

export interface SaleRun {
  readonly saleId: string;
  /** As many as these, or as many as make takes of this size. */
  readonly connections: number | ConnectionsWanted;
}

export class Fleet {
  readonly #nodes: readonly StockadeNode[];
  readonly #place: Place;
  readonly #parameters: ScaleParameters;

  private constructor(nodes: readonly StockadeNode[], place: Place, parameters: ScaleParameters) {
    this.#nodes = nodes;
    this.#place = place;
    this.#parameters = parameters;
  }

  /** @param teardown ends the nodes */
  static async start(
    size: ShopSize,
    place: Place,
    parameters: ScaleParameters,
    teardown: Teardown,
  ): Promise<Fleet> {
    const { eventsStreamMax } = parameters;
    const databaseUrl = await place.postgres.createDatabase('bench');
    const flags = {
      'key-prefix': `bench-${randomBytes(6).toString('hex')}:`,
      'request-deadline-ms': DEADLINE_MS,
    };
    const nodes: StockadeNode[] = [];
    for (let i = 0; i < size.nodes; i++) {
      const urls = { redisUrl: place.redisUrl, databaseUrl };
      const own = { workers: WORKERS, eventsStreamMax, eventsYieldMs: EVENTS_YIELD_MS, ...urls, flags };
      const node = await StockadeNode.start(place, own);
      teardown.add(() => node[Symbol.asyncDispose](), NODE_END_MS);
      nodes.push(node);
    }
    return new Fleet(nodes, place, parameters);
  }

  /** Sells a new sale to a crowd that is divided evenly among the nodes. @throws BenchFailure if an answer was not `201` */
  async sell({ saleId, connections: wanted }: SaleRun): Promise<Measurement> {
    const { segments } = this.#parameters;
    const [first] = this.#nodes;
    await first!.createSale({ id: saleId, stock: NEVER_SOLD_OUT, segments });
    const connections = await this.#warmUp(saleId, wanted);
    const measure = (count: number, attempt: number) => this.#measure(saleId, count, `m${attempt}`);
    if (typeof wanted === 'number') return measure(connections, 0);
    return measuredWithTakes({ ...wanted, first: connections }, measure);
  }

  async #measure(saleId: string, connections: number, series: string): Promise<Measurement> {
    const before = await this.#settled();
    await checkpoint(this.#place.postgres);
    const used = measureCpu({
      node: () => this.#nodes.reduce((sum, node) => sum + node.cpuSeconds(), 0),
      redis: () => this.#place.redisCpuSeconds(),
      postgres: () => this.#place.postgres.cpuSeconds(),
      wrk: () => endedChildrenCpuSecondsOf(process.pid),
    });
    const began = performance.now();
    await this.#crowd(saleId, connections, this.#parameters.seconds, series);
    const tookSeconds = (performance.now() - began) / 1_000;
    const cpu = used();
    const after = await this.#settled();
    const orders = rightAnswers(before, after, 'committed');
    const micros = (spent: number | undefined) => spent && (spent / orders) * 1e6;
    const [node, redis, postgres] = [micros(cpu.node), micros(cpu.redis), micros(cpu.postgres)];
    return {
      connections,
      ordersPerSecond: orders / tookSeconds,
      nodeCpuMicros: node,
      redisCpuMicros: redis,
      postgresCpuMicros: postgres,
      cpuMicros:
        node === undefined || redis === undefined || postgres === undefined
          ? undefined
          : node + redis + postgres,
      takeOrders: meanBatch(before.takes, after.takes),
      transactionOrders: meanBatch(before.transactions, after.transactions),
    };
  }

  /** @returns the connections for the measurement */
  async #warmUp(saleId: string, wanted: number | ConnectionsWanted): Promise<number> {
    const { warmupSeconds } = this.#parameters;
    const run = async (connections: number, attempt: number) => {
      const before = await this.#settled();
      await this.#crowd(saleId, connections, warmupSeconds, `w${attempt}`);
      return meanBatch(before.takes, (await this.#settled()).takes);
    };
    if (typeof wanted !== 'number') {
      return warmupSeconds > 0 ? connectionsForTakes(wanted, run) : wanted.first;
    }
    if (warmupSeconds > 0) await run(wanted, 0);
    return wanted;
  }

  /** Verifies a sale and closes it, so that the next one has the nodes for itself. @throws BenchFailure if it does not add up */
  async finish(saleId: string): Promise<void> {
    const [first] = this.#nodes;
    await first!.assertVerified(saleId);
    await first!.closeSale(saleId);
  }

  async lastWords(): Promise<string> {
    const words = this.#nodes.map(async (node, i) => `node ${i + 1}: ${await node.lastWords()}`);
    return (await Promise.all(words)).join('\n');
  }

  #settled(): Promise<NodeFigures> {
    const read = async () => together(await Promise.all(this.#nodes.map((node) => node.figures())));
    return settled(read, this.#parameters.eventsStreamMax > 0);
  }

  /** @param series keeps the buyers of the warm-ups and of the measurement apart */
  async #crowd(saleId: string, connections: number, seconds: number, series: string): Promise<void> {
    const shares = splitEvenly(connections, this.#nodes.length);
    await Promise.all(
      this.#nodes.map((node, i) =>
        runWrk({
          url: node.ordersUrl(saleId),
          connections: shares[i]!,
          seconds,
          script: SCRIPT,
          scriptArgs: [`buyer-${series}-${i}-`, ''],
        }),
      ),
    );
  }
}
