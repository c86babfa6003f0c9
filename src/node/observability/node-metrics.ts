/** `/metrics`: the sums of the workers' counters, and the metrics of the main thread. */
import { Gauge, type Registry } from 'prom-client';
import type { Board } from '../../engine/board/board.ts';
import type { SaleView } from '../../engine/board/directory.ts';
import type { Backend } from '../../engine/contract.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { SpanCounts } from '../../traces/span-queue.ts';
import { addBuildInfo, type ThreadMetrics, textOf, watchThread } from '../process/process-metrics.ts';
import type { WorkerMetrics } from '../worker/worker.ts';
import { MAX_LABELLED_SALES, spansJson, workerJson } from './worker-metrics.ts';

/** Time for reading all sales' segments together. While the backend can't be reached, the other metrics must still come. */
const SNAPSHOTS_MS = 2_000;

export interface MetricSources {
  readonly board: Board;
  readonly backend: Backend;
  readonly directory: { readonly views: ReadonlyMap<string, SaleView>; readonly usedSlots: number };
  workers(): Promise<readonly WorkerMetrics[]>;
  /** Of the main thread; `undefined`: it traces nothing. */
  spans(): SpanCounts | undefined;
}

export class NodeMetrics {
  readonly #registry: Registry;
  readonly #sources: MetricSources;
  readonly #sales: SaleGauges;
  readonly #main: ThreadMetrics = watchThread('main');

  /** @param registry has the metrics of the node's other parts */
  constructor(registry: Registry, sources: MetricSources) {
    this.#registry = registry;
    this.#sources = sources;
    this.#sales = new SaleGauges(registry, sources);
    addBuildInfo(registry);
  }

  async text(): Promise<string> {
    const [workers, main] = await Promise.all([this.#sources.workers(), this.#main(), this.#sales.collect()]);
    const ofThreads = [...workers.flatMap(({ thread }) => (thread ? [thread] : [])), main];
    const counted = await textOf([
      ...workers.map(workerJson),
      ...ofThreads,
      spansJson(this.#sources.spans()),
    ]);
    return `${await this.#registry.metrics()}\n${counted}`;
  }
}

/** The gauges of each sale: what the board says, and the units in its segments. */
class SaleGauges {
  readonly #sources: MetricSources;
  readonly #soldOut: Gauge<'sale'>;
  readonly #epoch: Gauge<'sale'>;
  readonly #left: Gauge<'sale'>;
  readonly #empty: Gauge<'sale'>;
  readonly #slotsUsed: Gauge;

  constructor(registry: Registry, sources: MetricSources) {
    this.#sources = sources;
    const gauge = (name: string, help: string) =>
      new Gauge({ name, help, labelNames: ['sale'] as const, registers: [registry] });
    this.#soldOut = gauge('stockade_board_sold_out', '1 while this node answers "sold out" from its board');
    this.#epoch = gauge('stockade_board_epoch', 'Newest epoch of the sale that this node knows');
    this.#left = gauge('stockade_units_left', 'Units left in all segments');
    this.#empty = gauge('stockade_segments_empty', 'Segments without units');
    this.#slotsUsed = new Gauge({
      name: 'stockade_board_slots_used',
      help: 'Sales with a slot on the board of this node',
      registers: [registry],
    });
  }

  async collect(): Promise<void> {
    for (const metric of [this.#soldOut, this.#epoch, this.#left, this.#empty]) metric.reset();
    const { board, directory } = this.#sources;
    this.#slotsUsed.set(directory.usedSlots);
    const views = [...directory.views.values()].slice(-MAX_LABELLED_SALES);
    // First of all: while the segments are read, a slot may get another sale.
    for (const { record, slot } of views) {
      const sale = record.sale.id;
      this.#soldOut.set({ sale }, board.isSoldOut(slot) ? 1 : 0);
      this.#epoch.set({ sale }, board.epoch(slot));
    }
    const deadline = monotonicMs() + SNAPSHOTS_MS;
    for (const view of views) {
      const sale = view.record.sale.id;
      const units = await this.#unitsLeft(view, deadline - monotonicMs());
      if (units.length === 0) continue;
      this.#left.set(
        { sale },
        units.reduce((sum, n) => sum + n, 0),
      );
      this.#empty.set({ sale }, units.filter((n) => n === 0).length);
    }
  }

  /** @returns the units left in each segment; none if they can't be read in this time */
  async #unitsLeft({ record }: SaleView, timeLeftMs: number): Promise<number[]> {
    if (timeLeftMs <= 0) return [];
    const { sale, generation } = record;
    const reading = this.#sources.backend.sales.snapshot(sale.id, sale.segments, generation);
    const segments = await withTimeout(timeLeftMs, reading).catch(() => []);
    return segments.flatMap((segment) => segment.counters?.left ?? []);
  }
}
