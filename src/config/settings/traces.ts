/**
 * Settings of traces. Names, values and the rule that appends `/v1/traces` to the endpoint are those of OpenTelemetry, so that a
 * shop sets its own programs and this one alike. Only the default of the sampler differs: most shops don't want to store a trace
 * of each purchase of a rush.
 */
import { fraction, oneOf, plainUrl, text } from '../values/schemas.ts';
import type { SecretUrl } from '../values/secret.ts';
import type { SettingTable } from './setting.ts';

const SAMPLERS = [
  'parentbased_traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'traceidratio',
  'always_on',
  'always_off',
] as const;

export interface TracesSettings {
  readonly otelExporterOtlpEndpoint: SecretUrl | undefined;
  readonly otelTracesExporter: 'otlp' | 'none';
  readonly otelExporterOtlpProtocol: string;
  readonly otelServiceName: string;
  readonly otelTracesSampler: (typeof SAMPLERS)[number];
  readonly otelTracesSamplerArg: number;
}

export const tracesSettings: SettingTable<TracesSettings> = {
  otelExporterOtlpEndpoint: {
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    flag: '--otel-exporter-otlp-endpoint <url>',
    schema: plainUrl(),
    fallback: undefined,
    description:
      'URL of an OpenTelemetry collector; `/v1/traces` is appended to it. If it is set, traces of some purchases are sent there.',
    usedBy: ['node', 'sync'],
  },
  otelTracesExporter: {
    env: 'OTEL_TRACES_EXPORTER',
    flag: '--otel-traces-exporter <otlp|none>',
    schema: oneOf('otlp', 'none'),
    fallback: ({ otelExporterOtlpEndpoint }) => (otelExporterOtlpEndpoint === undefined ? 'none' : 'otlp'),
    fallbackText: '`otlp` with an endpoint, else `none`',
    description:
      '`none`: no traces, even with an endpoint. `otlp`: traces, which are sent to `http://localhost:4318` if there is no endpoint.',
    usedBy: ['node', 'sync'],
  },
  otelExporterOtlpProtocol: {
    env: 'OTEL_EXPORTER_OTLP_PROTOCOL',
    flag: '--otel-exporter-otlp-protocol <protocol>',
    schema: text,
    fallback: 'http/json',
    description: 'Must be `http/json` if there are traces.',
    usedBy: ['node', 'sync'],
  },
  otelServiceName: {
    env: 'OTEL_SERVICE_NAME',
    flag: '--otel-service-name <name>',
    schema: text,
    fallback: 'stockade',
    description: 'The name under which traces show this process.',
    usedBy: ['node', 'sync'],
  },
  otelTracesSampler: {
    env: 'OTEL_TRACES_SAMPLER',
    flag: '--otel-traces-sampler <name>',
    schema: oneOf(...SAMPLERS),
    fallback: 'parentbased_traceidratio',
    description: `Which purchases are traced: ${SAMPLERS.map((name) => `\`${name}\``).join(', ')}. With \`parentbased_\`, a \`traceparent\` that came with the purchase decides.`,
    usedBy: ['node'],
  },
  otelTracesSamplerArg: {
    env: 'OTEL_TRACES_SAMPLER_ARG',
    flag: '--otel-traces-sampler-arg <share>',
    schema: fraction(),
    fallback: 0.01,
    description: 'The share of purchases that a sampler with `traceidratio` chooses, 0 to 1.',
    usedBy: ['node'],
  },
};
