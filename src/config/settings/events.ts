/** Settings of order events, which tell other programs about orders. */
import { plainUrl, whole } from '../values/schemas.ts';
import { originOnly, type Secret, type SecretUrl } from '../values/secret.ts';
import { webhookSecret } from '../values/webhook-secret.ts';
import type { SettingTable } from './setting.ts';

export interface EventsSettings {
  readonly eventsStreamMax: number;
  readonly eventsYieldMs: number;
  readonly webhookUrl: SecretUrl | undefined;
  readonly webhookSecret: Secret | undefined;
  readonly webhookTimeoutMs: number;
  readonly webhookMaxAttempts: number;
}

export const eventsSettings: SettingTable<EventsSettings> = {
  eventsStreamMax: {
    env: 'EVENTS_STREAM_MAX',
    flag: '--events-stream-max <n>',
    schema: whole(0, 1_000_000_000),
    fallback: 100_000,
    description:
      'About how many order events the stream in Redis keeps. The oldest are removed for new ones. 0: no stream.',
    shared: 'value',
  },
  eventsYieldMs: {
    env: 'EVENTS_YIELD_MS',
    flag: '--events-yield-ms <n>',
    schema: whole(0, 600_000),
    fallback: 15_000,
    description:
      'How long order events may wait while this node is busy with buyers, or late with their orders. 0: not at all.',
  },
  webhookUrl: {
    env: 'WEBHOOK_URL',
    flag: '--webhook-url <url>',
    schema: plainUrl(originOnly),
    fallback: undefined,
    description: 'URL to which order events are sent by HTTP POST.',
    shared: 'value',
  },
  webhookSecret: {
    env: 'WEBHOOK_SECRET',
    schema: webhookSecret,
    fallback: undefined,
    description:
      'Key of the signature in each request to `WEBHOOK_URL`, at least 16 characters; or `whsec_` and the key in base64.',
    shared: 'value',
  },
  webhookTimeoutMs: {
    env: 'WEBHOOK_TIMEOUT_MS',
    flag: '--webhook-timeout-ms <n>',
    schema: whole(10, 120_000),
    fallback: 10_000,
    description: 'How long one request to `WEBHOOK_URL` may take before it is tried again.',
  },
  webhookMaxAttempts: {
    env: 'WEBHOOK_MAX_ATTEMPTS',
    flag: '--webhook-max-attempts <n>',
    schema: whole(1, 1_000),
    fallback: 12,
    description:
      'After this number of attempts, events become dead letters and the next ones are sent. The pauses grow to a minute; 12 attempts take some 4 minutes.',
    shared: 'value',
  },
};
