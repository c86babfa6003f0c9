import type { Span, SpanContext } from '@opentelemetry/api';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Rejection, TakeOrder } from '../../../src/engine/contract.ts';
import { withTrace } from '../../../src/engine/sale/order-note.ts';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { addCommitSpans } from '../../../src/traces/commit-spans.ts';
import type { SpanSpec, Tracer } from '../../../src/traces/open-telemetry.ts';
import { PurchaseSpans } from '../../../src/traces/purchase-spans.ts';
import { SpanQueue } from '../../../src/traces/span-queue.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const CONTEXT: SpanContext = { traceId: TRACE_ID, spanId: SPAN_ID, traceFlags: 1 };

interface Made extends SpanSpec {
  readonly toMs: number;
}

/** A tracer that keeps what it is told. */
class ToldTracer implements Tracer {
  readonly queue = new SpanQueue({ debug() {}, info() {}, warn() {}, error() {} });
  readonly made: Made[] = [];
  readonly begun: SpanSpec[] = [];
  readonly ends: { toMs: number; attributes: unknown; isFailure: boolean }[] = [];
  #attributes: unknown;
  #isFailure = false;

  begin(spec: SpanSpec): Span {
    this.begun.push(spec);
    return {
      spanContext: () => CONTEXT,
      setAttributes: (attributes: unknown) => {
        this.#attributes = attributes;
      },
      end: (toMs: number) => {
        this.ends.push({ toMs, attributes: this.#attributes, isFailure: this.#isFailure });
      },
    } as unknown as Span;
  }
  add(spec: SpanSpec, toMs: number): void {
    this.made.push({ ...spec, toMs });
  }
  fail(): void {
    this.#isFailure = true;
  }
  parse(traceparent: string): SpanContext | undefined {
    const [, traceId = '', spanId = ''] = traceparent.split('-');
    return { traceId, spanId, traceFlags: 1 };
  }
  isSampled(): boolean {
    return true;
  }
  async close(): Promise<void> {}
}

let tracer: ToldTracer;
beforeEach(() => {
  tracer = new ToldTracer();
});

describe('the spans of a purchase', () => {
  const END = { outcome: 'committed', status: 201, saleId: 'sale', orderId: '1001' };

  test('are its states, one after the other, within the request', () => {
    const spans = new PurchaseSpans(tracer, undefined);
    spans.entered('queued');
    spans.entered('sent');
    spans.sent(3, 17);
    spans.entered('taken');
    spans.entered('settled');
    spans.ended(END);
    expect(spans.context).toBe(`00-${TRACE_ID}-${SPAN_ID}-01`);
    expect(tracer.made.map(({ name }) => name)).toEqual(['queue', 'take', 'await commit']);
    const [queue, take, wait] = tracer.made as [Made, Made, Made];
    expect([take.fromMs, wait.fromMs]).toEqual([queue.toMs, take.toMs]);
    expect(queue.fromMs).toBeGreaterThanOrEqual(tracer.begun[0]!.fromMs);
    expect(tracer.ends[0]!.toMs).toBeGreaterThanOrEqual(wait.toMs);
    expect(take.attributes).toEqual({ 'stockade.segment': 3, 'stockade.batch.orders': 17 });
    for (const { parent } of tracer.made) expect(parent).toBe(CONTEXT);
  });

  test('have the time of day', () => {
    const before = Date.now();
    new PurchaseSpans(tracer, undefined).ended(END);
    expect(tracer.begun[0]!.fromMs).toBeGreaterThan(before - 1);
    expect(tracer.begun[0]!.fromMs).toBeLessThan(Date.now() + 1);
  });

  test.each([
    [409, false],
    [499, false],
    [500, true],
    [503, true],
  ])('of a request that is answered %d are a failure: %s', (status, isFailure) => {
    new PurchaseSpans(tracer, undefined).ended({ ...END, status });
    expect(tracer.ends).toMatchObject([{ isFailure }]);
  });

  test('last until the answer if the purchase is not settled, and are told once', () => {
    const spans = new PurchaseSpans(tracer, CONTEXT);
    spans.entered('queued');
    spans.ended({ outcome: 'internal', status: 500, saleId: 'sale' });
    spans.entered('sent');
    spans.sent(0, 1);
    spans.ended(END);
    expect(tracer.begun[0]!.parent).toBe(CONTEXT);
    expect(tracer.made.map(({ name, toMs }) => [name, toMs])).toEqual([['queue', tracer.ends[0]!.toMs]]);
    expect(tracer.ends).toHaveLength(1);
    expect(tracer.ends[0]!.attributes).not.toHaveProperty('stockade.order');
  });
});

describe('the spans of a commit', () => {
  const order = (orderId: string, note?: string): TakeOrder => ({
    ...{ orderId, buyerId: 'anna', quantity: 1, key: '' },
    ...(note !== undefined && { note }),
  });
  const traced = (orderId: string) => order(orderId, withTrace('', `00-${TRACE_ID}-${SPAN_ID}-01`));

  test('are made for the traced orders only, and say which were refused', () => {
    const beganMs = monotonicMs() - 20;
    const entries = [
      [order('1'), traced('2')],
      [order('3', '{"reference":"basket"}'), traced('4')],
    ].map((orders) => ({ orders }));
    const rejected = new Map<string, Rejection>([['4', { orderId: '4', reason: 'limit' }]]);
    addCommitSpans(tracer, { slices: [{ entries }], orders: 4, beganMs, rejected });
    const common = { name: 'commit', parent: { traceId: TRACE_ID, spanId: SPAN_ID } };
    expect(tracer.made).toMatchObject([
      { ...common, attributes: { 'stockade.order': '2', 'stockade.batch.orders': 4 } },
      { ...common, attributes: { 'stockade.order': '4', 'stockade.rejected': 'limit' } },
    ]);
    expect(tracer.made[0]!.attributes).not.toHaveProperty('stockade.rejected');
    const { fromMs, toMs } = tracer.made[0]!;
    expect(toMs - fromMs).toBeGreaterThanOrEqual(20);
  });
});
