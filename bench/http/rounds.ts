/** The run: servers up, the phases of each round one after the other, and a proof at the end that all orders are there. */
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { freePort } from '../../test/support/servers/free-port.ts';
import { BenchFailure } from '../support/failure.ts';
import { count } from '../support/figures.ts';
import { NodeProgram } from '../support/node-program.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import { type StoreServers, startStoreServers } from '../support/stores.ts';
import { type Drain, type Load, type Measurement, measureEcho, measureSelling } from './measure.ts';
import type { HttpParameters } from './options.ts';
import { type PhaseName, type SellingPhase, sellingPhases } from './phases.ts';

const ECHO_SERVER = fileURLToPath(new URL('./echo-server.mjs', import.meta.url));

export type Round = Readonly<Partial<Record<PhaseName, Measurement>> & { echo: Measurement }>;

interface Servers {
  readonly stores: StoreServers;
  readonly node: StockadeNode;
  /** Only in a run that compares them. */
  readonly nodeHttp: StockadeNode | undefined;
  readonly echo: NodeProgram<unknown>;
  readonly echoPort: number;
}

/** @throws BenchFailure if answers were wrong, or if a sale does not add up at the end */
export async function runRounds(parameters: HttpParameters): Promise<Round[]> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const servers = await startServers(parameters, teardown);
    try {
      return await measureRounds(servers, parameters);
    } catch (error) {
      note(`The node: ${await servers.node.lastWords()}`);
      throw error;
    }
  } finally {
    await teardown.release();
  }
}

async function startServers(parameters: HttpParameters, teardown: Teardown): Promise<Servers> {
  const { workers } = parameters;
  note('Starting Redis, Postgres, the node and the echo server');
  const stores = await startStoreServers(teardown);
  const node = await StockadeNode.start(stores, parameters);
  teardown.add(() => node[Symbol.asyncDispose]());
  const nodeHttp = parameters.nodeHttp === 0 ? undefined : await startNodeHttp(stores, parameters);
  teardown.add(async () => nodeHttp?.[Symbol.asyncDispose]());
  const echoPort = await freePort();
  const echo = await NodeProgram.start('echo', [ECHO_SERVER, String(workers), String(echoPort)]);
  teardown.add(() => echo[Symbol.asyncDispose]());
  return { stores, node, nodeHttp, echo, echoPort };
}

function startNodeHttp(stores: StoreServers, parameters: HttpParameters): Promise<StockadeNode> {
  return StockadeNode.start(stores, { ...parameters, flags: { 'http-server': 'node' } });
}

interface Sold {
  readonly node: StockadeNode;
  readonly saleId: string;
}

async function measureRounds(servers: Servers, parameters: HttpParameters): Promise<Round[]> {
  const rounds: Round[] = [];
  const sold: Sold[] = [];
  for (let number = 1; number <= parameters.rounds; number++) {
    const name = (title: string) => `round ${number} of ${parameters.rounds}, ${title}`;
    const echo = said(name('echo'), await measureEcho(echoLoad(servers, parameters)));
    const measurements: Partial<Record<PhaseName, Measurement>> & { echo: Measurement } = { echo };
    for (const phase of sellingPhases(parameters)) {
      const node = phase.isOverNodeHttp ? servers.nodeHttp! : servers.node;
      const saleId = `${phase.outcome}-${number}`;
      sold.push({ node, saleId });
      const load = await sellingLoad({ ...servers, node }, phase, saleId, parameters);
      measurements[phase.name] = said(name(phase.title), await measureSelling(node, phase, load));
    }
    rounds.push(measurements);
  }
  await verifyAll(sold);
  return rounds;
}

function echoLoad({ stores, echo, echoPort }: Servers, parameters: HttpParameters): Load {
  const url = `http://127.0.0.1:${echoPort}/v1/sales/echo/orders`;
  return { url, prefer: '', parameters, cpu: cpuOf(stores, echo) };
}

async function sellingLoad(
  { stores, node }: Servers,
  phase: SellingPhase,
  saleId: string,
  parameters: HttpParameters,
): Promise<Load> {
  await node.createSale({ id: saleId, stock: phase.stock, segments: parameters.segments });
  if (phase.outcome === 'sold_out') await node.sellOut(saleId);
  return { url: node.ordersUrl(saleId), prefer: phase.prefer, parameters, cpu: cpuOf(stores, node) };
}

function cpuOf({ redis, postgres }: StoreServers, server: { cpuSeconds(): number }): Load['cpu'] {
  return {
    node: () => server.cpuSeconds(),
    redis: () => redis.cpuSeconds(),
    postgres: () => postgres.cpuSeconds(),
  };
}

async function verifyAll(sold: readonly Sold[]): Promise<void> {
  note(`Verifying ${sold.length} sales`);
  for (const { node, saleId } of sold) {
    const report = await node.verify(saleId);
    if (!report.ok || report.rejectedOrders > 0) {
      throw new BenchFailure(`verify of sale ${saleId} found a difference: ${JSON.stringify(report)}`);
    }
  }
}

function said(what: string, measurement: Measurement): Measurement {
  const { requestsPerSecond, p50Ms, drain } = measurement;
  note(`${what}: ${count(requestsPerSecond)} requests/s, p50 ${p50Ms.toFixed(2)} ms`);
  if (drain) note(`  ${drainText(drain)}`);
  return measurement;
}

export function drainText({ orders, seconds }: Drain): string {
  if (orders === 0) return 'sync kept up with the load: all orders were in Postgres when it ended';
  return `${count(orders)} orders were not in Postgres yet when the load ended; that took sync ${seconds.toFixed(1)} s`;
}
