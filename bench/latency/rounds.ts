/**
 * The run. In each round:
 *
 *   full load (wrk) ──> a lone buyer ──> 10 % ──> 30 % ──> 60 % of the full load's rate
 *
 * The rate of the same round counts, because the speed of a shared machine drifts.
 */
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { runCrowd } from '../support/crowd/crowd.ts';
import type { StreamPlan } from '../support/crowd/stream.ts';
import { Summary } from '../support/crowd/tally.ts';
import { BenchFailure } from '../support/failure.ts';
import { count } from '../support/figures.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import { checkpoint, NO_REWRITE_OF_AOF, type StoreServers, startStoreServers } from '../support/stores.ts';
import { runWrk } from '../support/wrk/wrk.ts';
import type { LatencyParameters } from './options.ts';

const SCRIPT = fileURLToPath(new URL('../support/wrk/order-request.lua', import.meta.url));
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

export interface Round {
  /** Committed purchases per second at full load. */
  readonly capacity: number;
  readonly loads: Readonly<Record<LoadName, Latency>>;
}

/** @throws BenchFailure if answers were wrong, or if a sale does not add up at the end */
export async function runRounds(parameters: LatencyParameters): Promise<Round[]> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    note('Starting Redis, Postgres and the node');
    const stores = await startStoreServers(teardown, ...NO_REWRITE_OF_AOF);
    const settings = { workers: parameters.workers, eventsStreamMax: 0, eventsYieldMs: 0 };
    const node = await StockadeNode.start(stores, settings);
    teardown.add(() => node[Symbol.asyncDispose]());
    const rounds: Round[] = [];
    for (let i = 0; i < parameters.rounds; i++) {
      note(`round ${i + 1} of ${parameters.rounds}`);
      rounds.push(await measureRound({ stores, node, parameters, name: `round-${i}` }));
    }
    return rounds;
  } finally {
    await teardown.release();
  }
}

interface Stage {
  readonly stores: StoreServers;
  readonly node: StockadeNode;
  readonly parameters: LatencyParameters;
  /** Tells the sales of this round from those of others. */
  readonly name: string;
}

async function measureRound(stage: Stage): Promise<Round> {
  const capacity = await onNewSale(stage, 'full', (saleId) => fullLoad(stage, saleId));
  note(`  full load: ${count(capacity)} committed/s`);
  const loads: Partial<Record<LoadName, Latency>> = {};
  for (const name of LOADS) {
    const perSecond = name === 'lone' ? undefined : capacity * SHARES[name];
    const latency = await onNewSale(stage, name.replace(' %', ''), (saleId) =>
      belowIt(stage, saleId, perSecond),
    );
    note(
      `  ${name}: ${count(latency.perSecond)}/s, p50 ${latency.p50Ms.toFixed(1)} ms, p99 ${latency.p99Ms.toFixed(1)} ms`,
    );
    loads[name] = latency;
  }
  return { capacity, loads: loads as Record<LoadName, Latency> };
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

async function fullLoad({ node, parameters }: Stage, saleId: string): Promise<number> {
  const run = { url: node.ordersUrl(saleId), connections: parameters.connections, script: SCRIPT };
  await runWrk({ ...run, seconds: WARM_UP_MS / 1_000, scriptArgs: ['w', ''] });
  return (await runWrk({ ...run, seconds: parameters.seconds, scriptArgs: ['m', ''] })).requestsPerSecond;
}

/** @param perSecond `undefined`: one buyer after the other */
async function belowIt(
  { node, parameters }: Stage,
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
  const { results } = await runCrowd(node.publicUrl, [[plan]]);
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
