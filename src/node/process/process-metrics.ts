/**
 * prom-client's own metrics of a process, under the names that dashboards for Node.js expect, and the version of the program.
 *
 * Processor time, memory and open files are those of the process. Event loop, heap and garbage collection are those of one
 * thread, so each thread collects them for itself, with its name as a label.
 */
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  type Histogram,
  Registry,
} from 'prom-client';
import { lostLogLines } from './log-output.ts';
import { version } from './version.ts';

/** The metrics of all threads must have different labels: their sums are then each thread's own value. */
const AGGREGATOR = 'sum';
/** How long the event loop sleeps at most to measure its delay. This time is part of each measured value. */
const LOOP_RESOLUTION_MS = 20;

const OF_THREAD = /^nodejs_(eventloop_lag_|gc_|heap_size_|external_memory_)/;
const OF_PROCESS = /^(process_|nodejs_version_info)/;

/** A metric with its values, in the form in which prom-client's aggregator expects it. */
interface MetricJson {
  readonly name: string;
  readonly aggregator: string;
  readonly values: readonly { readonly labels: Readonly<Record<string, unknown>> }[];
}

export type ThreadMetrics = () => Promise<readonly object[]>;

/** @param thread such as `main`; the metrics of the process are collected with that one */
export function watchThread(thread: string): ThreadMetrics {
  const own = new Registry();
  collectDefaultMetrics({
    register: own,
    labels: { thread },
    eventLoopMonitoringPrecision: LOOP_RESOLUTION_MS,
  });
  const isMain = thread === 'main';
  const isKept = (name: string) => OF_THREAD.test(name) || (isMain && OF_PROCESS.test(name));
  // Some of the others look at every open connection each time.
  for (const { name } of own.getMetricsAsArray()) if (!isKept(name)) own.removeSingleMetric(name);
  const collections = own.getSingleMetric('nodejs_gc_duration_seconds') as Histogram | undefined;
  // From the start, so that Prometheus sees the increase by the first one.
  for (const kind of ['major', 'minor', 'incremental', 'weakcb']) collections?.zero({ kind, thread });
  const lost = new Counter({
    name: 'stockade_log_lines_lost_total',
    help: 'Lines of the log that were lost because it could not be written',
    labelNames: ['thread'] as const,
    registers: [own],
    collect: () => {
      lost.reset();
      lost.inc({ thread }, lostLogLines());
    },
  });
  return async () => {
    const metrics = (await own.getMetricsAsJSON()) as unknown as readonly MetricJson[];
    return metrics.map((metric) => ({
      ...metric,
      aggregator: AGGREGATOR,
      ...(OF_PROCESS.test(metric.name) && { values: metric.values.map(withoutThread) }),
    }));
  };
}

function withoutThread<T extends { readonly labels: Readonly<Record<string, unknown>> }>(value: T): T {
  const { thread: _, ...labels } = value.labels;
  return { ...value, labels };
}

/** @param threads the metrics of each */
export async function textOf(threads: readonly (readonly object[])[]): Promise<string> {
  return AggregatorRegistry.aggregate([...threads] as object[]).metrics();
}

export function addBuildInfo(registry: Registry): void {
  new Gauge({
    name: 'stockade_build_info',
    help: 'Always 1; its labels are the versions of Stockade and of Node.js',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version: version(), node: process.versions.node }, 1);
}
