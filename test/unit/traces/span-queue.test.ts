import type { ExportResult } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { beforeEach, expect, test } from 'vitest';
import { MAX_WAITING_SPANS, SpanQueue } from '../../../src/traces/span-queue.ts';

const lines: string[] = [];
const write = (_: unknown, message?: string) => void lines.push(message ?? String(_));
const log = { debug: write, info: write, warn: write, error: write };
const span = {} as ReadableSpan;
/** Exports that are under way. */
let underWay: ((result: ExportResult) => void)[] = [];
let passed = 0;
let queue: SpanQueue;
let processor: SpanProcessor;
let exporter: SpanExporter;

beforeEach(() => {
  lines.length = 0;
  underWay = [];
  passed = 0;
  queue = new SpanQueue(log);
  const none = async () => {};
  processor = queue.before({
    onStart: () => {},
    onEnd: () => void passed++,
    forceFlush: none,
    shutdown: none,
  });
  exporter = queue.counted({ export: (_, done) => void underWay.push(done), shutdown: none });
});

const end = (spans: number) => {
  for (let i = 0; i < spans; i++) processor.onEnd(span);
};
const send = (spans: number) => exporter.export(Array(spans).fill(span), () => {});
const OK: ExportResult = { code: 0 };
const failure = (message: string): ExportResult => ({ code: 1, error: new Error(message) });

test('drops and counts the spans that it has no room for', () => {
  end(MAX_WAITING_SPANS + 3);
  expect(queue.isFull).toBe(true);
  expect(passed).toBe(MAX_WAITING_SPANS);
  expect(queue.counts).toEqual({ exported: 0, failed: 0, dropped: 3 });
});

test('has room again for the spans that were exported or that failed', () => {
  end(MAX_WAITING_SPANS);
  send(10);
  send(5);
  expect(queue.isFull, 'while the collector has not answered').toBe(true);
  underWay[0]!(OK);
  underWay[1]!(failure('refused'));
  end(16);
  expect(queue.counts).toEqual({ exported: 10, failed: 5, dropped: 1 });
});

test('says once that the collector fails, and once that it works again', () => {
  end(4);
  for (const result of [failure('refused'), failure('refused'), OK, OK]) {
    send(1);
    underWay.pop()!(result);
  }
  expect(lines).toEqual(['traces can’t be sent to the collector', 'traces are sent to the collector again']);
});
