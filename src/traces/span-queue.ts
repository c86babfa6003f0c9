/**
 * Bounds and counts the spans on their way to the collector:
 *
 *   ended ──room──> waiting ──batch──> exported
 *     │                         └────> failed: the collector refused them, or could not be reached
 *     └──no room──> dropped
 *
 * Nothing waits for the collector. While it is slow or down, up to MAX_WAITING_SPANS are kept, and further ones are dropped.
 */
import type { ExportResult } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { Log } from '../node/process/log.ts';

/** Some 10 MB in each thread. */
export const MAX_WAITING_SPANS = 8_192;

/** Since the start of the thread. */
export interface SpanCounts {
  readonly exported: number;
  readonly failed: number;
  readonly dropped: number;
}

export const NO_SPANS: SpanCounts = { exported: 0, failed: 0, dropped: 0 };

export class SpanQueue {
  readonly #log: Log;
  readonly #counts = { ...NO_SPANS };
  #waiting = 0;
  #isFailing = false;

  constructor(log: Log) {
    this.#log = log;
  }

  get counts(): SpanCounts {
    return { ...this.#counts };
  }

  /** If it is full, a new trace would be dropped, so there is no point in beginning it: call `drop` instead. */
  get isFull(): boolean {
    return this.#waiting >= MAX_WAITING_SPANS;
  }

  drop(): void {
    this.#counts.dropped++;
  }

  /** @param next must have room for MAX_WAITING_SPANS */
  before(next: SpanProcessor): SpanProcessor {
    return {
      onStart: () => {},
      onEnd: (span) => {
        if (this.isFull) return this.drop();
        this.#waiting++;
        next.onEnd(span);
      },
      forceFlush: () => next.forceFlush(),
      shutdown: () => next.shutdown(),
    };
  }

  /** The exporter, with each of its results counted. */
  counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans: ReadableSpan[], done: (result: ExportResult) => void) =>
        exporter.export(spans, (result) => {
          this.#settled(spans.length, result.error);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
  }

  #settled(spans: number, error: Error | undefined): void {
    this.#waiting -= spans;
    if (error) {
      this.#counts.failed += spans;
      // Only the first failure in a row, because there may be one each second.
      if (!this.#isFailing)
        this.#log.warn({ reason: error.message || error.name }, 'traces can’t be sent to the collector');
    } else {
      this.#counts.exported += spans;
      if (this.#isFailing) this.#log.info('traces are sent to the collector again');
    }
    this.#isFailing = error !== undefined;
  }
}
