/** One phase: warmed up, measured with wrk, and its answers checked. */
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { endedChildrenCpuSecondsOf } from '../../test/support/servers/process/process-table.ts';
import { type CpuReaders, type CpuSeconds, measureCpu } from '../support/cpu-meter.ts';
import { BenchFailure } from '../support/failure.ts';
import { backlog, meanBatch } from '../support/metrics-text.ts';
import type { StockadeNode } from '../support/stockade-node.ts';
import { MAX_WRONG_SHARE, rightAnswers } from '../support/wrk/right-answers.ts';
import { runWrk } from '../support/wrk/wrk.ts';
import type { WrkReport } from '../support/wrk/wrk-output.ts';
import type { SellingPhase } from './phases.ts';
import { perRequest, type Traffic } from './traffic.ts';

const SCRIPT = fileURLToPath(new URL('../support/wrk/order-request.lua', import.meta.url));
/** Processor time is in microseconds per request; `undefined` where the system does not report it. */
export interface Measurement {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly nodeCpuMicros: number | undefined;
  readonly redisCpuMicros: number | undefined;
  readonly postgresCpuMicros: number | undefined;
  readonly wrkCpuMicros: number | undefined;
  /** All of them together. */
  readonly cpuMicros: number | undefined;
  /** The share of all cores that they used. */
  readonly coreUse: number | undefined;
  /** Orders in each script call, and in each transaction of sync; `undefined`: there was none. */
  readonly takeOrders?: number | undefined;
  readonly transactionOrders?: number | undefined;
  /** Bytes for each request, of the answer and between the programs. */
  readonly answerBytes?: number;
  readonly toRedisBytes?: number;
  readonly fromRedisBytes?: number;
  readonly walBytes?: number;
  readonly drain?: Drain;
}

/**
 * What the phase left in the order logs, how long sync needed for it, and the figures of the phase with that time
 * included.
 */
export interface Drain {
  readonly orders: number;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  readonly cpuMicros: number | undefined;
}

/** The programs whose processor time is measured, besides wrk. */
type Program = 'node' | 'redis' | 'postgres';

export interface Load {
  readonly url: string;
  readonly prefer: string;
  readonly connections: number;
  readonly seconds: number;
  readonly warmupSeconds: number;
  /** The processor time of Node, Redis and Postgres. */
  readonly cpu: CpuReaders<Program>;
  /** Requests of another kind than orders of new buyers. */
  readonly script?: { readonly path: string; readonly args: readonly string[] };
}

export interface SellingLoad extends Load {
  readonly traffic: () => Promise<Traffic>;
}

/** What a load measured. */
interface Loaded {
  readonly report: WrkReport;
  readonly measurement: Measurement;
  /** Processor time since it began, up to now, in microseconds per request. */
  readonly cpuMicrosNow: () => number | undefined;
}

/** Any answer without an error status is right. */
export async function measureAnswered(load: Load): Promise<Measurement> {
  await warmUp(load);
  const { report, measurement } = await underLoad(load);
  checkErrors(report, report.errorStatuses, 'answers with an error status');
  return measurement;
}

export async function measureSelling(
  node: StockadeNode,
  phase: SellingPhase,
  load: SellingLoad,
): Promise<Measurement> {
  await warmUp(load);
  const before = await node.settled();
  const trafficBefore = await load.traffic();
  const { report, measurement, cpuMicrosNow } = await underLoad(load);
  const ended = performance.now();
  const loaded = await node.figures();
  const traffic = perRequest(trafficBefore, await load.traffic(), report.requests);
  await node.drained();
  const seconds = (performance.now() - ended) / 1_000;
  const drain = {
    orders: backlog(loaded),
    seconds,
    requestsPerSecond: report.requests / (load.seconds + seconds),
    cpuMicros: cpuMicrosNow(),
  };
  rightAnswers(before, await node.settled(), phase.outcome);
  checkErrors(report, 0, '');
  return {
    ...measurement,
    takeOrders: meanBatch(before.takes, loaded.takes),
    transactionOrders: meanBatch(before.transactions, loaded.transactions),
    answerBytes: report.bytes / report.requests,
    toRedisBytes: traffic.toRedis,
    fromRedisBytes: traffic.fromRedis,
    walBytes: traffic.wal,
    ...(phase.outcome === 'accepted' && { drain }),
  };
}

async function warmUp(load: Load): Promise<void> {
  if (load.warmupSeconds > 0) await runWrk(wrkRun(load, load.warmupSeconds, 'w'));
}

async function underLoad(load: Load): Promise<Loaded> {
  const readers = { ...load.cpu, wrk: () => endedChildrenCpuSecondsOf(process.pid) };
  const used = measureCpu(readers);
  const began = performance.now();
  const report = await runWrk(wrkRun(load, load.seconds, 'm'));
  const tookSeconds = (performance.now() - began) / 1_000;
  const { requests, requestsPerSecond, p50Ms, p99Ms } = report;
  if (requests === 0) throw new BenchFailure(`no request to ${load.url} was answered`);
  const micros = (seconds: number | undefined) =>
    seconds === undefined ? undefined : (seconds / requests) * 1e6;
  const cpu = used();
  const together = sumOf(cpu);
  const measurement = {
    requestsPerSecond,
    p50Ms,
    p99Ms,
    nodeCpuMicros: micros(cpu.node),
    redisCpuMicros: micros(cpu.redis),
    postgresCpuMicros: micros(cpu.postgres),
    wrkCpuMicros: micros(cpu.wrk),
    cpuMicros: micros(together),
    coreUse: together === undefined ? undefined : together / tookSeconds / availableParallelism(),
  };
  return { report, measurement, cpuMicrosNow: () => micros(sumOf(used())) };
}

function sumOf({ node, redis, postgres, wrk }: CpuSeconds<Program | 'wrk'>): number | undefined {
  if (node === undefined || redis === undefined || postgres === undefined || wrk === undefined)
    return undefined;
  return node + redis + postgres + wrk;
}

/** @param series keeps the buyers of the warm-up and of the measurement apart */
function wrkRun({ url, prefer, connections, script }: Load, seconds: number, series: 'w' | 'm') {
  const scriptArgs = script ? script.args : [`buyer-${series}`, prefer];
  return { url, connections, seconds, script: script?.path ?? SCRIPT, scriptArgs };
}

/** Fails if too many requests got no answer, or a wrong one. */
function checkErrors({ requests, socketErrors }: WrkReport, wrong: number, what: string): void {
  const { connect, read, write, timeout } = socketErrors;
  const errors = connect + read + write + timeout + wrong;
  if (errors <= requests * MAX_WRONG_SHARE) return;
  const named = [`${connect} connect`, `${read} read`, `${write} write`, `${timeout} timeout`];
  if (wrong > 0) named.push(`${wrong} ${what}`);
  throw new BenchFailure(`wrk saw ${errors} errors in ${requests} requests: ${named.join(', ')}`);
}
