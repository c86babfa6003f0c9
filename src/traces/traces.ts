/**
 * Traces of purchases (docs/decisions/0021-traces.md). Each thread that has something to trace opens them for itself, and sends
 * its spans to the collector.
 */
import { withTimeout } from '../lib/with-timeout.ts';
import type { Log } from '../node/process/log.ts';
import { type AppliedBatch, addCommitSpans } from './commit-spans.ts';
import { openTracer, type Tracer } from './open-telemetry.ts';
import { PurchaseSpans } from './purchase-spans.ts';
import { Sampling } from './sampling.ts';
import type { TraceSettings } from './settings.ts';
import type { SpanCounts } from './span-queue.ts';

/** At a stop, the collector has this long to take the last spans. It must not use up the time of the stores. */
const LAST_SPANS_MS = 1_000;

export class Traces {
  readonly #tracer: Tracer;
  readonly #sampling: Sampling;

  private constructor(tracer: Tracer, settings: TraceSettings) {
    this.#tracer = tracer;
    this.#sampling = new Sampling(settings);
  }

  /** @returns `undefined` without settings: then nothing is traced, and nothing is loaded */
  static async open(settings: TraceSettings | undefined, log: Log): Promise<Traces | undefined> {
    return settings && new Traces(await openTracer(settings, log), settings);
  }

  /** @param traceparent the request's header; `''`: none. @returns `undefined` if the purchase is not traced */
  begin(traceparent: string): PurchaseSpans | undefined {
    const tracer = this.#tracer;
    const parent = traceparent === '' ? undefined : tracer.parse(traceparent);
    if (!this.#sampling.isSampled(parent && tracer.isSampled(parent))) return undefined;
    if (tracer.queue.isFull) return void tracer.queue.drop();
    return new PurchaseSpans(tracer, parent);
  }

  committed(batch: AppliedBatch): void {
    addCommitSpans(this.#tracer, batch);
  }

  get counts(): SpanCounts {
    return this.#tracer.queue.counts;
  }

  /** Never rejects. Spans that the collector does not take in time are lost. */
  async close(): Promise<void> {
    await withTimeout(LAST_SPANS_MS, this.#tracer.close()).catch(() => {});
  }
}
