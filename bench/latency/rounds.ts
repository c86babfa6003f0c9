/**
 * The run. In each round:
 *
 *   full load (wrk) ──> a lone buyer ──> 10 % ──> 30 % ──> 60 % of the full load's rate
 *
 * The rate of the same round counts, because the speed of a shared machine drifts. Below the full load, each load is first sent
 * to the node and then to a server that only inserts.
 */
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { freePort } from '../../test/support/servers/process/free-port.ts';
import { measureCpu } from '../support/cpu-meter.ts';
import { runCrowd } from '../support/crowd/crowd.ts';
import type { StreamPlan } from '../support/crowd/stream.ts';
import { Summary } from '../support/crowd/tally.ts';
import { BenchFailure } from '../support/failure.ts';
import { count } from '../support/figures.ts';
import { meanBatch } from '../support/metrics-text.ts';
import { NodeProgram } from '../support/node-program.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import { checkpoint, NO_REWRITE_OF_AOF, type StoreServers, startStoreServers } from '../support/stores.ts';
import { runWrk } from '../support/wrk/wrk.ts';
import { createBareOrders } from '../sync/bare-orders.ts';
import type { LatencyParameters } from './options.ts';

const SCRIPT = fileURLToPath(new URL('../support/wrk/order-request.lua', import.meta.url));
const INSERTING_SERVER = fileURLToPath(new URL('./inserting-server.mjs', import.meta.url));
const NEVER_SOLD_OUT = 50_000_000;
/** Time to warm up, which is not measured. */
const WARM_UP_MS = 1_000;
const COMMITTED = 'committed';
/** The share of purchases that may have another answer: those of a stall of the machine. */
const MAX_WRONG_SHARE = 0.001;

export const LOADS = ['lone', '10 %', '30 %', '60 %'] as const;
export type LoadName = (typeof LOADS)[number];
const SHARES = { '10 %': 0.1, '30 %': 0.3, '60 %': 0.6 } as const;

/** Latencies are from the moment when the purchase was due, in milliseconds. */
export interface Latency {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Purchases that were due when all connections waited for answers. */
  readonly unsent: number;
}

/** What a purchase costs. Processor time is in microseconds; `undefined` where the system does not report it. */
export interface Cost {
  /** Orders in a take and in a transaction, on average. */
  readonly take: number | undefined;
  readonly transaction: number | undefined;
  readonly node: number | undefined;
  readonly redis: number | undefined;
  readonly postgres: number | undefined;
}

/** Of the node, and of a server that only inserts. */
export interface Latencies {
  readonly node: Latency & Cost;
  readonly inserting: Latency;
}

export interface Round {
  /** Committed purchases per second at full load. */
  readonly capacity: number;
  readonly loads: Readonly<Record<LoadName, Latencies>>;
}

/** @throws BenchFailure if answers were wrong, or if a sale does not add up at the end */
export async function runRounds(parameters: LatencyParameters): Promise<Round[]> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    note('Starting Redis, Postgres and the node');
    const stores = await startStoreServers(teardown, ...NO_REWRITE_OF_AOF);
    const databaseUrl = await stores.postgres.createDatabase('bench');
    const settings = { workers: parameters.workers, eventsStreamMax: 0, eventsYieldMs: 0, databaseUrl };
    const node = await StockadeNode.start(stores, settings);
    teardown.add(() => node[Symbol.asyncDispose]());
    const insertingUrl = await startInserting(databaseUrl, teardown);
    const rounds: Round[] = [];
    for (let i = 0; i < parameters.rounds; i++) {
      note(`round ${i + 1} of ${parameters.rounds}`);
      rounds.push(await measureRound({ stores, node, insertingUrl, parameters, name: `round-${i}` }));
    }
    return rounds;
  } finally {
    await teardown.release();
  }
}

interface Stage {
  readonly stores: StoreServers;
  readonly node: StockadeNode;
  readonly insertingUrl: string;
  readonly parameters: LatencyParameters;
  /** Tells the sales of this round from those of others. */
  readonly name: string;
}

/** @returns the url of a server that only inserts orders */
async function startInserting(databaseUrl: string, teardown: Teardown): Promise<string> {
  const db = openDatabase({ url: databaseUrl, maxConnections: 1 });
  try {
    await createBareOrders(db);
  } finally {
    await db.destroy();
  }
  const port = await freePort();
  const server = await NodeProgram.start('inserting', [INSERTING_SERVER, databaseUrl, String(port)]);
  teardown.add(() => server[Symbol.asyncDispose]());
  return `http://127.0.0.1:${port}`;
}

async function measureRound(stage: Stage): Promise<Round> {
  const capacity = await onNewSale(stage, 'full', (saleId) => fullLoad(stage, saleId));
  note(`  full load: ${count(capacity)} committed/s`);
  const loads: Partial<Record<LoadName, Latencies>> = {};
  for (const name of LOADS) {
    const perSecond = name === 'lone' ? undefined : capacity * SHARES[name];
    const node = await onNewSale(stage, idOf(name), (saleId) =>
      withCost(stage, () => belowIt(stage.node.publicUrl, stage, saleId, perSecond)),
    );
    note(`  ${name}: ${latencyText(node)}`);
    await checkpoint(stage.stores.postgres);
    const inserting = await belowIt(stage.insertingUrl, stage, `${stage.name}-${idOf(name)}`, perSecond);
    note(`  ${name}, inserting only: ${latencyText(inserting)}`);
    loads[name] = { node, inserting };
  }
  return { capacity, loads: loads as Record<LoadName, Latencies> };
}

/** As a part of a sale's id. */
function idOf(name: LoadName): string {
  return name.replace(' %', '');
}

function latencyText({ perSecond, p50Ms, p99Ms }: Latency): string {
  return `${count(perSecond)}/s, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`;
}

async function onNewSale<T>(
  { stores, node, parameters, name }: Stage,
  load: string,
  work: (saleId: string) => Promise<T>,
) {
  const id = `${name}-${load}`;
  await node.createSale({ id, stock: NEVER_SOLD_OUT, segments: parameters.segments });
  await checkpoint(stores.postgres);
  const result = await work(id);
  await node.settled();
  await node.assertVerified(id);
  return result;
}

/** The cost of all purchases of the load, its warm-up included. */
async function withCost({ node, stores }: Stage, load: () => Promise<Latency>): Promise<Latency & Cost> {
  const before = await node.settled();
  const used = measureCpu({
    node: () => node.cpuSeconds(),
    redis: () => stores.redis.cpuSeconds(),
    postgres: () => stores.postgres.cpuSeconds(),
  });
  const latency = await load();
  const cpu = used();
  const after = await node.settled();
  const orders = after.transactions.orders - before.transactions.orders;
  const micros = (seconds: number | undefined) =>
    seconds === undefined ? undefined : (seconds / orders) * 1e6;
  return {
    ...latency,
    take: meanBatch(before.takes, after.takes),
    transaction: meanBatch(before.transactions, after.transactions),
    node: micros(cpu.node),
    redis: micros(cpu.redis),
    postgres: micros(cpu.postgres),
  };
}

async function fullLoad({ node, parameters }: Stage, saleId: string): Promise<number> {
  const run = { url: node.ordersUrl(saleId), connections: parameters.connections, script: SCRIPT };
  await runWrk({ ...run, seconds: WARM_UP_MS / 1_000, scriptArgs: ['w', ''] });
  return (await runWrk({ ...run, seconds: parameters.seconds, scriptArgs: ['m', ''] })).requestsPerSecond;
}

/** @param perSecond `undefined`: one buyer after the other */
async function belowIt(
  url: string,
  { parameters }: Stage,
  saleId: string,
  perSecond: number | undefined,
): Promise<Latency> {
  const plan: StreamPlan = {
    name: 'buyer',
    saleId,
    lines: perSecond === undefined ? 1 : parameters.connections,
    perSecond,
    fromMs: 0,
    toMs: WARM_UP_MS + parameters.seconds * 1_000,
    awaitCommit: true,
  };
  const { results } = await runCrowd(url, [[plan]]);
  const summary = new Summary(results[plan.name]!.tally, { fromMs: WARM_UP_MS, toMs: plan.toMs });
  const wrong = summary.codes.filter((code) => code !== COMMITTED);
  const right = summary.answers(COMMITTED);
  if (wrong.reduce((sum, code) => sum + summary.answers(code), 0) > right * MAX_WRONG_SHARE)
    throw new BenchFailure(
      `there came ${wrong.map((code) => `${summary.answers(code)} ${code}`).join(', ')}`,
    );
  const percentile = (share: number) => summary.percentileMs(COMMITTED, share) ?? Number.NaN;
  return {
    perSecond: summary.perSecond(COMMITTED),
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    unsent: summary.unsent,
  };
}
