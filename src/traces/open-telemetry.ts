/**
 * The only file that loads OpenTelemetry, and only when something is traced: its packages take 0.07 s of processor time and 13 MB
 * in each thread. They are imported by `import()` here, because an `import` declaration would load them when a node starts.
 */
import type { Attributes, Span, SpanContext } from '@opentelemetry/api';
import type { Log } from '../node/process/log.ts';
import type { TraceSettings } from './settings.ts';
import { MAX_WAITING_SPANS, SpanQueue } from './span-queue.ts';

const SCOPE = 'stockade';
const BATCH_SPANS = 512;
/** How long a span waits for others at most. */
const BATCH_WAIT_MS = 1_000;
/** Ids of sales, buyers' requests for sales that don't exist: some texts come from clients. */
const MAX_ATTRIBUTE_CHARACTERS = 256;

export interface SpanSpec {
  readonly name: string;
  /** Milliseconds since 1970, with fractions. */
  readonly fromMs: number;
  /** The span that this one is a part of; missing: it begins a trace. */
  readonly parent?: SpanContext | undefined;
  readonly attributes?: Attributes;
}

/** Makes spans; every one of them is exported. */
export interface Tracer {
  readonly queue: SpanQueue;
  /** The span of a request that this process serves. */
  begin(spec: SpanSpec): Span;
  /** A part of a trace that has ended. @param toMs as `fromMs` */
  add(spec: SpanSpec, toMs: number): void;
  /** Marks a span as one of a failure. */
  fail(span: Span): void;
  /** The context in a `traceparent`; `undefined` if the header is malformed. */
  parse(traceparent: string): SpanContext | undefined;
  isSampled(context: SpanContext): boolean;
  /** Sends what waits, and ends. May take as long as the collector. */
  close(): Promise<void>;
}

export async function openTracer({ url, resource }: TraceSettings, log: Log): Promise<Tracer> {
  const [api, core, resources, sdk, otlp] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/core'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
  ]);
  const queue = new SpanQueue(log);
  const batches = new sdk.BatchSpanProcessor({
    exporter: queue.counted(new otlp.OTLPTraceExporter({ url })),
    maxQueueSize: MAX_WAITING_SPANS,
    maxExportBatchSize: BATCH_SPANS,
    scheduledDelayMillis: BATCH_WAIT_MS,
  });
  // From the environment come OTEL_RESOURCE_ATTRIBUTES; what the settings say wins.
  const fromEnvironment = resources.detectResources({ detectors: [resources.envDetector] });
  const provider = new sdk.TracerProvider({
    resource: fromEnvironment.merge(resources.resourceFromAttributes(resource)),
    // sampling.ts has decided before a span is made.
    sampler: new sdk.AlwaysOnSampler(),
    spanLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_CHARACTERS },
    spanProcessors: [queue.before(batches)],
  });
  const tracer = provider.getTracer(SCOPE, resource['service.version']);
  const start = ({ name, fromMs, parent, attributes }: SpanSpec, kind: number) => {
    const context = parent ? api.trace.setSpanContext(api.ROOT_CONTEXT, parent) : api.ROOT_CONTEXT;
    return tracer.startSpan(name, { kind, startTime: fromMs, ...(attributes && { attributes }) }, context);
  };
  return {
    queue,
    begin: (spec) => start(spec, api.SpanKind.SERVER),
    add: (spec, toMs) => start(spec, api.SpanKind.INTERNAL).end(toMs),
    fail: (span) => void span.setStatus({ code: api.SpanStatusCode.ERROR }),
    parse: (traceparent) => core.parseTraceParent(traceparent) ?? undefined,
    isSampled: ({ traceFlags }) => (traceFlags & api.TraceFlags.SAMPLED) !== 0,
    close: () => provider.shutdown(),
  };
}
