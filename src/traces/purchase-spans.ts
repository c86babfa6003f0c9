/**
 * The spans of one purchase: one for its HTTP request, and in it one for each state that the purchase is in
 * (engine/purchase/purchase.ts). The spans of states are made when the purchase is answered: until then, a state is a name and
 * a time.
 *
 *   POST /v1/sales/{saleId}/orders   from the request to its answer
 *   ├─ queue          until the purchase is in a batch
 *   ├─ take           from the batch to the reply of its segment
 *   ├─ await commit   until the watermark
 *   └─ commit         the transaction of sync, in the process that syncs (commit-spans.ts)
 */
import type { Attributes, Span, SpanContext } from '@opentelemetry/api';
import type { PurchaseTrace } from '../engine/contract.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { Tracer } from './open-telemetry.ts';

const ROUTE = '/v1/sales/{saleId}/orders';
const REQUEST_ATTRIBUTES = { 'http.request.method': 'POST', 'http.route': ROUTE };
const FIRST_SERVER_ERROR = 500;

/** Names of the spans, by the state. A settled purchase has none: its request ends. */
const NAMES: Readonly<Record<string, string>> = {
  queued: 'queue',
  parked: 'parked',
  sent: 'take',
  unconfirmed: 'take unconfirmed',
  taken: 'await commit',
  checking: 'check record',
};

/** How a request ended. */
export interface RequestEnd {
  readonly outcome: string;
  readonly status: number;
  readonly saleId: string;
  readonly orderId?: string | undefined;
}

interface Stay {
  readonly name: string | undefined;
  readonly fromMs: number;
  attributes?: Attributes;
}

export class PurchaseSpans implements PurchaseTrace {
  /** The span of the request, in the form of a `traceparent`. */
  readonly context: string;
  readonly #tracer: Tracer;
  readonly #span: Span;
  /** Added to the clock of `monotonicMs`, it gives milliseconds since 1970. Fixed, so that no span ends before it began. */
  readonly #epochMs = Date.now() - monotonicMs();
  readonly #stays: Stay[] = [];
  #isEnded = false;

  /** @param parent the client's span; `undefined`: the request begins a trace */
  constructor(tracer: Tracer, parent: SpanContext | undefined) {
    this.#tracer = tracer;
    this.#span = tracer.begin({
      name: `POST ${ROUTE}`,
      fromMs: this.#now(),
      parent,
      attributes: REQUEST_ATTRIBUTES,
    });
    const { traceId, spanId } = this.#span.spanContext();
    this.context = `00-${traceId}-${spanId}-01`;
  }

  entered(state: string): void {
    if (!this.#isEnded) this.#stays.push({ name: NAMES[state], fromMs: this.#now() });
  }

  sent(segment: number, orders: number): void {
    const stay = this.#stays.at(-1);
    if (stay) stay.attributes = { 'stockade.segment': segment, 'stockade.batch.orders': orders };
  }

  /** Call it when the request is answered. Only the first call counts. */
  ended({ outcome, status, saleId, orderId }: RequestEnd): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const endMs = this.#now();
    const parent = this.#span.spanContext();
    for (const [i, { name, fromMs, attributes = {} }] of this.#stays.entries()) {
      const toMs = this.#stays[i + 1]?.fromMs ?? endMs;
      if (name !== undefined) this.#tracer.add({ name, fromMs, parent, attributes }, toMs);
    }
    this.#span.setAttributes({
      'http.response.status_code': status,
      'stockade.outcome': outcome,
      'stockade.sale': saleId,
      ...(orderId !== undefined && { 'stockade.order': orderId }),
    });
    if (status >= FIRST_SERVER_ERROR) this.#tracer.fail(this.#span);
    this.#span.end(endMs);
  }

  #now(): number {
    return monotonicMs() + this.#epochMs;
  }
}
