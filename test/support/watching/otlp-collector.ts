/** A stand-in for an OpenTelemetry collector: takes spans over OTLP/HTTP as JSON, and keeps them. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  /** `''`: the first span of its trace. */
  readonly parentSpanId: string;
  readonly name: string;
  /** Milliseconds since 1970, with fractions. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly isFailure: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string };
}

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number };
  readonly attributes: readonly Attribute[];
}

interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const FAILURE = 2;
const NANOS_PER_MS = 1_000_000;

export class OtlpCollector implements AsyncDisposable {
  readonly spans: SeenSpan[] = [];
  /** Everything that came, as it came. */
  readonly texts: string[] = [];
  requests = 0;
  readonly #server: Server;
  readonly #held: ServerResponse[] = [];
  #hangs: boolean;

  private constructor(hangs: boolean) {
    this.#hangs = hangs;
    this.#server = createServer((request, response) => {
      this.requests++;
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (request.url === '/v1/traces') this.#take(Buffer.concat(chunks).toString());
        if (this.#hangs) this.#held.push(response);
        else answer(response);
      });
    });
  }

  /** @param hangs whether it takes requests and does not answer them */
  static async start({ hangs = false } = {}): Promise<OtlpCollector> {
    const collector = new OtlpCollector(hangs);
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #take(text: string): void {
    this.texts.push(text);
    for (const { resource, scopeSpans } of (JSON.parse(text) as OtlpRequest).resourceSpans) {
      const service = String(plain(resource.attributes)['service.name']);
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) this.spans.push(seen(service, span));
    }
  }
}

function answer(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
}

function seen(service: string, span: OtlpSpan): SeenSpan {
  const { traceId, spanId, parentSpanId = '', name, status } = span;
  return {
    ...{ service, traceId, spanId, parentSpanId, name },
    fromMs: Number(span.startTimeUnixNano) / NANOS_PER_MS,
    toMs: Number(span.endTimeUnixNano) / NANOS_PER_MS,
    isFailure: status.code === FAILURE,
    attributes: plain(span.attributes),
  };
}

function plain(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
  );
}
