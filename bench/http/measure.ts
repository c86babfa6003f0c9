/** One phase: warmed up, measured with wrk, and its answers checked. */
import { fileURLToPath } from 'node:url';
import { endedChildrenCpuSecondsOf } from '../../test/support/servers/process-table.ts';
import { type CpuReaders, measureCpu } from '../support/cpu-meter.ts';
import { BenchFailure } from '../support/failure.ts';
import { answersBetween, backlog, type NodeFigures } from '../support/metrics-text.ts';
import type { StockadeNode } from '../support/stockade-node.ts';
import { runWrk } from '../support/wrk.ts';
import type { WrkReport } from '../support/wrk-output.ts';
import type { HttpParameters } from './options.ts';
import type { SellingPhase } from './phases.ts';

const SCRIPT = fileURLToPath(new URL('./request.lua', import.meta.url));
/** Part of the answers that may be other than wanted: those that wrk cuts off, and a stumble of the machine. */
const MAX_WRONG_SHARE = 0.001;

export interface Measurement {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time per request, in microseconds; `undefined` where the system doesn't tell. */
  readonly nodeCpuMicros: number | undefined;
  readonly redisCpuMicros: number | undefined;
  readonly postgresCpuMicros: number | undefined;
  readonly wrkCpuMicros: number | undefined;
  readonly drain?: Drain;
}

/** What the phase left in the order logs, and how long sync needed for it afterwards. */
export interface Drain {
  readonly orders: number;
  readonly seconds: number;
}

export interface Load {
  readonly url: string;
  readonly prefer: string;
  readonly parameters: HttpParameters;
  /** Whose processor time counts as Node's, Redis' and Postgres'. */
  readonly cpu: CpuReaders<'node' | 'redis' | 'postgres'>;
}

export async function measureEcho(load: Load): Promise<Measurement> {
  await warmUp(load);
  const { report, measurement } = await underLoad(load);
  refuseErrors(report, report.errorStatuses, 'answers with an error status');
  return measurement;
}

export async function measureSelling(
  node: StockadeNode,
  phase: SellingPhase,
  load: Load,
): Promise<Measurement> {
  await warmUp(load);
  const before = await node.settled();
  const { report, measurement } = await underLoad(load);
  const drain = await waitForDrain(node);
  checkAnswers(phase, before, await node.settled());
  refuseErrors(report, 0, '');
  return { ...measurement, ...(phase.outcome === 'accepted' && { drain }) };
}

async function warmUp(load: Load): Promise<void> {
  const seconds = load.parameters.warmupSeconds;
  if (seconds > 0) await runWrk(wrkRun(load, seconds, 'w'));
}

async function underLoad(load: Load): Promise<{ report: WrkReport; measurement: Measurement }> {
  const used = measureCpu({ ...load.cpu, wrk: () => endedChildrenCpuSecondsOf(process.pid) });
  const report = await runWrk(wrkRun(load, load.parameters.seconds, 'm'));
  const seconds = used();
  const { requests, requestsPerSecond, p50Ms, p99Ms } = report;
  if (requests === 0) throw new BenchFailure(`no request to ${load.url} was answered`);
  const micros = (used: number | undefined) => (used === undefined ? undefined : (used / requests) * 1e6);
  const measurement = {
    requests,
    requestsPerSecond,
    p50Ms,
    p99Ms,
    nodeCpuMicros: micros(seconds.node),
    redisCpuMicros: micros(seconds.redis),
    postgresCpuMicros: micros(seconds.postgres),
    wrkCpuMicros: micros(seconds.wrk),
  };
  return { report, measurement };
}

/** @param series keeps the buyers of the warm-up and of the measurement apart */
function wrkRun({ url, prefer, parameters: { connections } }: Load, seconds: number, series: 'w' | 'm') {
  return { url, connections, seconds, script: SCRIPT, scriptArgs: [`buyer-${series}`, prefer] };
}

async function waitForDrain(node: StockadeNode): Promise<Drain> {
  const began = performance.now();
  const orders = backlog(await node.figures());
  await node.drained();
  return { orders, seconds: (performance.now() - began) / 1_000 };
}

/** @throws BenchFailure with what came instead */
function checkAnswers({ title, outcome }: SellingPhase, before: NodeFigures, after: NodeFigures): void {
  const answers = answersBetween(before, after);
  let total = 0;
  for (const n of answers.values()) total += n;
  const wrong = total - (answers.get(outcome) ?? 0);
  if (total > 0 && wrong <= total * MAX_WRONG_SHARE) return;
  const came = [...answers].map(([name, n]) => `${n} ${name}`).join(', ');
  throw new BenchFailure(`${title}: of ${total} answers ${wrong} were not ${outcome}; there came ${came}`);
}

/** Requests that got no answer at all, or one that must not be. */
function refuseErrors({ requests, socketErrors }: WrkReport, wrong: number, what: string): void {
  const { connect, read, write, timeout } = socketErrors;
  const errors = connect + read + write + timeout + wrong;
  if (errors <= requests * MAX_WRONG_SHARE) return;
  const named = [`${connect} connect`, `${read} read`, `${write} write`, `${timeout} timeout`];
  if (wrong > 0) named.push(`${wrong} ${what}`);
  throw new BenchFailure(`wrk saw ${errors} errors in ${requests} requests: ${named.join(', ')}`);
}
