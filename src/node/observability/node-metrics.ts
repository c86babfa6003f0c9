/** `/metrics`: the sums of the workers' counters, and the metrics of the main thread. */
import { AggregatorRegistry, Gauge, type Registry } from 'prom-client';
import type { Board } from '../../engine/board/board.ts';
import type { SaleView } from '../../engine/board/directory.ts';
import type { Backend } from '../../engine/contract.ts';
import { BATCH_BOUNDS, type HistogramData, LATENCY_BOUNDS_S } from '../../http/server/request-stats.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { watchProcess } from '../process/process-metrics.ts';
import type { WorkerMetrics } from '../worker/worker.ts';

/** Only this many sales, the newest, have metrics of their own, so that the number of labels is bounded. */
const MAX_LABELLED_SALES = 200;
/** Time for the counters of all sales together. While the backend can't be reached, the other metrics must still come. */
const SNAPSHOTS_MS = 2_000;

export interface MetricSources {
  readonly board: Board;
  readonly backend: Backend;
  readonly views: ReadonlyMap<string, SaleView>;
  workers(): Promise<readonly WorkerMetrics[]>;
}

export class NodeMetrics {
  readonly #registry: Registry;
  readonly #sources: MetricSources;

  /** @param registry has the metrics of the node's other parts */
  constructor(registry: Registry, sources: MetricSources) {
    this.#registry = registry;
    this.#sources = sources;
    watchProcess(registry);
    const registers = [registry];
    const labelNames = ['sale'];
    const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames, registers });
    const soldOut = gauge('stockade_board_sold_out', '1 while this node answers "sold out" from its board');
    const epoch = gauge('stockade_board_epoch', 'Newest epoch of the sale that this node knows');
    const left = gauge('stockade_units_left', 'Units left in all segments');
    const empty = gauge('stockade_segments_empty', 'Segments without units');
    this.#collect = async () => {
      for (const metric of [soldOut, epoch, left, empty]) metric.reset();
      const { board, backend, views } = this.#sources;
      const deadline = monotonicMs() + SNAPSHOTS_MS;
      for (const { record, slot } of [...views.values()].slice(-MAX_LABELLED_SALES)) {
        const sale = record.sale.id;
        soldOut.set({ sale }, board.isSoldOut(slot) ? 1 : 0);
        epoch.set({ sale }, board.epoch(slot));
        const timeLeftMs = deadline - monotonicMs();
        if (timeLeftMs <= 0) continue;
        const reading = backend.sales.snapshot(sale, record.sale.segments, record.generation);
        const segments = await withTimeout(timeLeftMs, reading).catch(() => []);
        const units = segments.flatMap((segment) => segment.counters?.left ?? []);
        if (units.length === 0) continue;
        left.set(
          { sale },
          units.reduce((sum, n) => sum + n, 0),
        );
        empty.set({ sale }, units.filter((n) => n === 0).length);
      }
    };
  }

  readonly #collect: () => Promise<void>;

  async text(): Promise<string> {
    const [workers] = await Promise.all([this.#sources.workers(), this.#collect()]);
    const counted = AggregatorRegistry.aggregate(workers.map(workerJson));
    return `${await this.#registry.metrics()}\n${await counted.metrics()}`;
  }
}

interface Value {
  readonly labels: Record<string, string | number>;
  readonly value: number;
  readonly metricName?: string;
}

/** A worker's metrics in the form that prom-client's aggregator expects of a cluster worker. */
function workerJson({
  requests,
  refills,
  connections,
  heapBytes,
  lanes,
  limits,
  tokens,
}: WorkerMetrics): object[] {
  const requestName = 'stockade_request_duration_seconds';
  const batchName = 'stockade_batch_orders';
  const perSale = lanes.slice(-MAX_LABELLED_SALES);
  return [
    {
      name: requestName,
      help: 'Purchases by outcome, from the request to its answer',
      type: 'histogram',
      aggregator: 'sum',
      values: Object.entries(requests.latency).flatMap(([outcome, data]) =>
        histogramValues(requestName, LATENCY_BOUNDS_S, data, { outcome }),
      ),
    },
    {
      name: batchName,
      help: 'Orders in one take',
      type: 'histogram',
      aggregator: 'sum',
      values: histogramValues(batchName, BATCH_BOUNDS, requests.batches, {}),
    },
    {
      name: 'stockade_refills_total',
      help: 'Batches whose home segment had too few units; units were moved there, or the sale was found sold out',
      type: 'counter',
      aggregator: 'sum',
      values: [{ labels: {}, value: refills }],
    },
    {
      name: 'stockade_rate_limited_total',
      help: 'Requests answered 429, by the limit that they exceeded',
      type: 'counter',
      aggregator: 'sum',
      values: byLabel('limit', limits.refused),
    },
    {
      name: 'stockade_rate_limit_evictions_total',
      help: 'Buyers and addresses whose counts were dropped too early because the table was full',
      type: 'counter',
      aggregator: 'sum',
      values: byLabel('limit', limits.evicted),
    },
    {
      name: 'stockade_purchase_tokens_total',
      help: 'Requests for purchase tokens by outcome',
      type: 'counter',
      aggregator: 'sum',
      values: byLabel('outcome', tokens),
    },
    {
      name: 'stockade_connections',
      help: "Open connections to the buyers' port",
      type: 'gauge',
      aggregator: 'sum',
      values: [{ labels: {}, value: connections.open }],
    },
    {
      name: 'stockade_connections_refused_total',
      help: 'Connections beyond MAX_CONNECTIONS',
      type: 'counter',
      aggregator: 'sum',
      values: [
        { labels: { how: 'busy' }, value: connections.shed },
        { labels: { how: 'closed' }, value: connections.dropped },
      ],
    },
    {
      name: 'stockade_connections_limited_total',
      help: 'Connections of one address beyond RATE_LIMIT_CONNECTIONS',
      type: 'counter',
      aggregator: 'sum',
      values: [
        { labels: { how: 'busy' }, value: connections.ofAddress.shed },
        { labels: { how: 'closed' }, value: connections.ofAddress.dropped },
      ],
    },
    {
      name: 'stockade_worker_heap_bytes',
      help: 'Heap of all workers, including garbage that is not collected yet',
      type: 'gauge',
      aggregator: 'sum',
      values: [{ labels: {}, value: heapBytes }],
    },
    {
      name: 'stockade_lane_depth',
      help: 'Purchases queued in the lanes',
      type: 'gauge',
      aggregator: 'sum',
      values: perSale.map(({ saleId, queued }) => ({ labels: { sale: saleId }, value: queued })),
    },
    {
      name: 'stockade_commit_waiters',
      help: 'Purchases whose units are taken and which wait for the commit in Postgres',
      type: 'gauge',
      aggregator: 'sum',
      values: perSale.map(({ saleId, waiting }) => ({ labels: { sale: saleId }, value: waiting })),
    },
  ];
}

function byLabel(label: string, counts: Readonly<Record<string, number>>): Value[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

function histogramValues(
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
