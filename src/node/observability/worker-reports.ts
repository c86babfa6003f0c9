import { Gauge, type Registry } from 'prom-client';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { RunningWorker, WorkerMetrics } from '../worker/worker.ts';

/** Time for all workers together. A worker that hangs must not hide the metrics of the others. */
const ANSWER_MS = 2_000;

/** What the workers report for the metrics. */
export class WorkerReports {
  readonly #workers: readonly Pick<RunningWorker, 'number' | 'metrics'>[];
  readonly #last = new Map<number, WorkerMetrics>();
  readonly #silent: Gauge;

  /** @param workers may grow until the node has started */
  constructor(workers: readonly Pick<RunningWorker, 'number' | 'metrics'>[], registry: Registry) {
    this.#workers = workers;
    this.#silent = new Gauge({
      name: 'stockade_workers_silent',
      help: 'Workers that do not answer, so that their last values are shown',
      registers: [registry],
    });
  }

  /**
   * Of a worker that does not answer, the last report: without it the sums would fall, and rise again later, which Prometheus takes for
   * events. But its thread's own metrics are left out, because they would show an event loop that works.
   */
  async read(): Promise<WorkerMetrics[]> {
    const answered = await Promise.all(this.#workers.map((worker) => this.#ask(worker)));
    this.#silent.set(answered.filter((isAnswered) => !isAnswered).length);
    return this.#workers.flatMap(({ number }, i) => {
      const last = this.#last.get(number);
      if (!last || answered[i]) return last ?? [];
      const { thread: _, ...counts } = last;
      return counts;
    });
  }

  /** @returns whether it answers */
  async #ask({ number, metrics }: Pick<RunningWorker, 'number' | 'metrics'>): Promise<boolean> {
    try {
      this.#last.set(number, await withTimeout(ANSWER_MS, metrics()));
      return true;
    } catch {
      return false;
    }
  }
}
