/** The metrics of one worker, in the form in which prom-client's aggregator expects those of a cluster worker. */
import { BATCH_BOUNDS, type HistogramData, LATENCY_BOUNDS_S } from '../../http/server/request-stats.ts';
import { NO_SPANS, type SpanCounts } from '../../traces/span-queue.ts';
import type { WorkerMetrics } from '../worker/worker.ts';

/** Only this many sales, the newest, have metrics of their own, so that the number of labels is bounded. */
export const MAX_LABELLED_SALES = 200;

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** How the values of all workers become one. */
  readonly aggregator: 'sum' | 'max';
  readonly values: readonly Value[];
}

export interface Value {
  readonly labels: Record<string, string | number>;
  readonly value: number;
  readonly metricName?: string;
}

type Define = (name: string, help: string, values: number | readonly Value[]) => Metric;

const counter: Define = (name, help, values) => metric('counter', name, help, valuesOf(values));
const gauge: Define = (name, help, values) => metric('gauge', name, help, valuesOf(values));
/** Of what several workers read in the same place, the greatest value. */
const greatest: Define = (name, help, values) => ({ ...gauge(name, help, values), aggregator: 'max' });

export function workerJson(worker: WorkerMetrics): object[] {
  const { requests, refills, connections, listeners, heapBytes, limits, tokens, spans } = worker;
  const lanes = worker.lanes.slice(-MAX_LABELLED_SALES);
  const bySale = (field: 'queued' | 'waiting') =>
    lanes.map((lane) => ({ labels: { sale: lane.saleId }, value: lane[field] }));
  return [
    latencies(requests.latency),
    batchSizes(requests.batches),
    counter(
      'stockade_refills_total',
      'Batches whose home segment had too few units; units were moved there, or the sale was found sold out',
      refills,
    ),
    counter(
      'stockade_rate_limited_total',
      'Requests answered 429, by the limit that they exceeded',
      byLabel('limit', limits.refused),
    ),
    counter(
      'stockade_rate_limit_evictions_total',
      'Buyers and addresses whose counts were dropped too early because the table was full',
      byLabel('limit', limits.evicted),
    ),
    counter(
      'stockade_purchase_tokens_total',
      'Requests for purchase tokens by outcome',
      byLabel('outcome', tokens),
    ),
    ...placesJson(worker.places),
    gauge('stockade_connections', "Open connections to the buyers' port", connections.open),
    counter(
      'stockade_connections_refused_total',
      'Connections beyond MAX_CONNECTIONS',
      byLabel('how', { busy: connections.shed, closed: connections.dropped }),
    ),
    counter(
      'stockade_connections_limited_total',
      'Connections of one address beyond RATE_LIMIT_CONNECTIONS',
      byLabel('how', { busy: connections.ofAddress.shed, closed: connections.ofAddress.dropped }),
    ),
    gauge('stockade_listeners', 'Streams that tell what changes in a sale', listeners.open),
    counter(
      'stockade_listeners_refused_total',
      'Streams that were refused because the node had too many, or closed because the client did not read',
      byLabel('how', { busy: listeners.refused, slow: listeners.slow }),
    ),
    gauge(
      'stockade_worker_heap_bytes',
      'Heap of all workers, including garbage that is not collected yet',
      heapBytes,
    ),
    ...spansJson(spans),
    gauge('stockade_lane_depth', 'Purchases queued in the lanes', bySale('queued')),
    gauge(
      'stockade_commit_waiters',
      'Purchases whose units are taken and which wait for the commit in Postgres',
      bySale('waiting'),
    ),
  ];
}

function placesJson({ answers, queues }: WorkerMetrics['places']): Metric[] {
  const shown = queues.slice(-MAX_LABELLED_SALES);
  const bySale = (of: (queue: (typeof queues)[number]) => number) =>
    shown.map((queue) => ({ labels: { sale: queue.saleId }, value: of(queue) }));
  return [
    counter(
      'stockade_queue_requests_total',
      'Requests for places of queues, by route and outcome',
      Object.entries(answers).flatMap(([route, counts]) =>
        Object.entries(counts).map(([outcome, value]) => ({ labels: { route, outcome }, value })),
      ),
    ),
    greatest(
      'stockade_queue_waiting',
      'Places behind the head of a queue that somebody asks for: no more than these wait',
      bySale(({ behindHead }) => behindHead),
    ),
    greatest(
      'stockade_queue_silent_seconds',
      'For how long this node has seen no new report of the head on a queue that somebody asks for',
      bySale(({ silentMs }) => silentMs / 1_000),
    ),
  ];
}

/** The spans of one thread, traced or not, so that the series exist from the start. */
export function spansJson(spans: SpanCounts = NO_SPANS): Metric[] {
  return [
    counter(
      'stockade_trace_spans_total',
      'Spans of traces by what became of them',
      byLabel('outcome', { ...spans }),
    ),
  ];
}

function latencies(byOutcome: WorkerMetrics['requests']['latency']): Metric {
  const name = 'stockade_request_duration_seconds';
  const values = Object.entries(byOutcome).flatMap(([outcome, data]) =>
    bucketValues(name, LATENCY_BOUNDS_S, data, { outcome }),
  );
  return metric('histogram', name, 'Purchases by outcome, from the request to its answer', values);
}

function batchSizes(data: HistogramData): Metric {
  const name = 'stockade_batch_orders';
  return metric('histogram', name, 'Orders in one take', bucketValues(name, BATCH_BOUNDS, data, {}));
}

function metric(type: Metric['type'], name: string, help: string, values: readonly Value[]): Metric {
  return { name, help, type, aggregator: 'sum', values };
}

function valuesOf(values: number | readonly Value[]): readonly Value[] {
  return typeof values === 'number' ? [{ labels: {}, value: values }] : values;
}

/** One value for each entry of the counts, which becomes the value of the label. */
function byLabel(label: string, counts: Readonly<Record<string, number>>): Value[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

/** @param bounds upper bounds of the buckets; the last bucket has none */
function bucketValues(
  name: string,
  bounds: readonly number[],
  { buckets, sum }: HistogramData,
  labels: Record<string, string>,
): Value[] {
  const values: Value[] = [];
  let count = 0;
  for (const [i, n] of buckets.entries()) {
    count += n;
    values.push({
      labels: { ...labels, le: bounds[i] ?? '+Inf' },
      value: count,
      metricName: `${name}_bucket`,
    });
  }
  values.push(
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  );
  return values;
}
