import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import { version } from '../node/process/version.ts';

/** Where an exporter without an endpoint sends to, by the specification of OTLP. */
const DEFAULT_ENDPOINT = 'http://localhost:4318';

/** Plain values only, because they cross a thread boundary. */
export interface TraceSettings {
  /** Where spans are posted. */
  readonly url: string;
  readonly sampler: Config['otelTracesSampler'];
  /** The share that a sampler with `traceidratio` chooses, 0 to 1. */
  readonly share: number;
  /** What every span says of its process. */
  readonly resource: Readonly<Record<string, string>>;
}

/** `undefined`: nothing is traced. */
export function traceSettings(config: Config): TraceSettings | undefined {
  if (config.otelTracesExporter === 'none') return undefined;
  const endpoint = config.otelExporterOtlpEndpoint?.reveal() ?? DEFAULT_ENDPOINT;
  return {
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    sampler: config.otelTracesSampler,
    share: config.otelTracesSamplerArg,
    resource: {
      'service.name': config.otelServiceName,
      'service.version': version(),
      'service.instance.id': `${hostname()}-${process.pid}`,
    },
  };
}
