/** The servers of a run: stores, the node of each build, and the echo server. */
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { freePort } from '../../test/support/servers/process/free-port.ts';
import { readSpans } from '../support/metrics-text.ts';
import { NodeProgram } from '../support/node-program.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import { checkpoint, NO_REWRITE_OF_AOF, type StoreServers, startStoreServers } from '../support/stores.ts';
import { type Load, type Measurement, measureAnswered, measureSelling } from './measure.ts';
import type { Build, HttpParameters } from './options.ts';
import type { SellingPhase } from './phases.ts';
import { readTraffic } from './traffic.ts';

const ECHO_SERVER = fileURLToPath(new URL('./echo-server.mjs', import.meta.url));
const COLLECTOR = fileURLToPath(new URL('./collector.mjs', import.meta.url));

/** This node, and the node it is compared with. */
export type CandidateName = 'this' | 'other';

export class Stage {
  readonly #stores: StoreServers;
  readonly #echo: NodeProgram<unknown>;
  readonly #echoPort: number;
  readonly #nodes: ReadonlyMap<CandidateName, StockadeNode>;
  readonly #parameters: HttpParameters;
  /** Sales to verify, each with its node. */
  readonly #sold: { readonly node: StockadeNode; readonly saleId: string }[] = [];

  private constructor(
    stores: StoreServers,
    nodes: ReadonlyMap<CandidateName, StockadeNode>,
    echo: { readonly program: NodeProgram<unknown>; readonly port: number },
    parameters: HttpParameters,
  ) {
    this.#stores = stores;
    this.#nodes = nodes;
    this.#echo = echo.program;
    this.#echoPort = echo.port;
    this.#parameters = parameters;
  }

  static async start(parameters: HttpParameters, teardown: Teardown): Promise<Stage> {
    const { workers, compare, otherSegments, traces } = parameters;
    note('Starting Redis, Postgres, the nodes and the echo server');
    const stores = await startStoreServers(teardown, ...NO_REWRITE_OF_AOF);
    const nodes = new Map<CandidateName, StockadeNode>();
    const add = async (name: CandidateName, build: Partial<Build>) => {
      const node = await StockadeNode.start(stores, { ...parameters, ...build });
      teardown.add(() => node[Symbol.asyncDispose]());
      nodes.set(name, node);
    };
    await add('this', {});
    if (compare) await add('other', compare);
    if (otherSegments !== undefined) await add('other', {});
    if (traces !== undefined) await add('other', { flags: await tracing(traces, teardown) });
    const port = await freePort();
    const program = await NodeProgram.start('echo', [ECHO_SERVER, String(workers), String(port)]);
    teardown.add(() => program[Symbol.asyncDispose]());
    return new Stage(stores, nodes, { program, port }, parameters);
  }

  get candidates(): readonly CandidateName[] {
    return [...this.#nodes.keys()];
  }

  echo(connections: number): Promise<Measurement> {
    const url = `http://127.0.0.1:${this.#echoPort}/v1/sales/echo/orders`;
    // The stores' own work meanwhile does not count for the echo.
    const cpu = { node: () => this.#echo.cpuSeconds(), redis: () => 0, postgres: () => 0 };
    return measureAnswered({ ...this.#loadOf(connections), url, prefer: '', cpu });
  }

  /** Sells one sale. @param number tells it from the other sales of the phase */
  async sell(
    name: CandidateName,
    phase: SellingPhase,
    number: number,
    connections: number,
  ): Promise<Measurement> {
    const node = this.#nodes.get(name)!;
    const saleId = `${phase.outcome}-${connections}-${number}`;
    this.#sold.push({ node, saleId });
    const { segments: usual, otherSegments = usual } = this.#parameters;
    const segments = name === 'other' ? otherSegments : usual;
    await node.createSale({ id: saleId, stock: phase.stock, segments });
    if (phase.outcome === 'sold_out') await node.sellOut(saleId);
    const { redis, postgres } = this.#stores;
    await checkpoint(postgres);
    const cpu = {
      node: () => node.cpuSeconds(),
      redis: () => redis.cpuSeconds(),
      postgres: () => postgres.cpuSeconds(),
    };
    return measureSelling(node, phase, {
      ...this.#loadOf(connections),
      url: node.ordersUrl(saleId),
      prefer: phase.prefer,
      cpu,
      traffic: () => readTraffic(this.#stores),
    });
  }

  /** @throws BenchFailure if a sale does not add up */
  async verify(): Promise<void> {
    note(`Verifying ${this.#sold.length} sales`);
    for (const { node, saleId } of this.#sold.splice(0)) await node.assertVerified(saleId);
  }

  /** What became of the spans of the node that traces, by outcome. */
  async spans(): Promise<Readonly<Record<string, number>>> {
    return readSpans(await this.#nodes.get('other')!.metrics());
  }

  async lastWords(): Promise<string> {
    const words = [...this.#nodes].map(async ([name, node]) => `${name}: ${await node.lastWords()}`);
    return (await Promise.all(words)).join('\n');
  }

  #loadOf(connections: number): Pick<Load, 'connections' | 'seconds' | 'warmupSeconds'> {
    const { seconds, warmupSeconds } = this.#parameters;
    return { connections, seconds, warmupSeconds };
  }
}

/** Starts a collector. @returns the flags of a node that sends it this share of its purchases */
async function tracing(share: number, teardown: Teardown): Promise<Record<string, string>> {
  const collector = await NodeProgram.start<{ readonly port: number }>('collector', [COLLECTOR]);
  teardown.add(() => collector[Symbol.asyncDispose]());
  return {
    'otel-exporter-otlp-endpoint': `http://127.0.0.1:${collector.announcement.port}`,
    'otel-traces-sampler': 'traceidratio',
    'otel-traces-sampler-arg': String(share),
  };
}
