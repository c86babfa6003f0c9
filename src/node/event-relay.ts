import type { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import type { Receiver } from '../events/order-event.ts';
import { EventRelay } from '../events/relay.ts';
import type { Teardown } from '../lib/teardown.ts';
import { watchEvents } from './observability/event-watch.ts';
import type { Log } from './process/log.ts';
import type { Stores } from './stores/stores.ts';
import type { Webhook } from './webhook.ts';

interface RelayParts {
  readonly config: Config;
  readonly log: Log;
  readonly stores: Stores;
  readonly registry: Registry;
  /** Gets the order events instead of the configured webhook. */
  readonly receiver?: Receiver | undefined;
  /** While this is true, the relay leaves the processor to purchases and sync, for a bounded time. */
  readonly isLoadHigh: () => boolean;
}

/** Relays order events to the configured stream and webhook until the teardown runs. */
export async function startEventRelay(parts: RelayParts, teardown: Teardown): Promise<void> {
  const { config, log, stores, registry, isLoadHigh } = parts;
  const { db, backend, locks } = stores;
  const webhook = await openWebhook(config);
  const receiver = parts.receiver ?? webhook;
  const stream = backend.events && { events: backend.events, maxEvents: config.eventsStreamMax };
  const relay = new EventRelay({
    db,
    locks,
    stream: config.eventsStreamMax > 0 ? stream : undefined,
    webhook: receiver && { receiver, maxAttempts: config.webhookMaxAttempts },
    backpressure: { isLoadHigh, maxMs: config.eventsYieldMs },
    events: watchEvents(log, registry, parts.receiver !== undefined),
  });
  relay.start();
  teardown.add(async () => {
    await relay.stop();
    await webhook?.close();
  });
}

/** Its HTTP client takes 0.05 s of processor time to load, so it is loaded only for a webhook. */
async function openWebhook(config: Config): Promise<Webhook | undefined> {
  const { webhookUrl, webhookSecret, webhookTimeoutMs } = config;
  if (!webhookUrl || !webhookSecret) return undefined;
  const { Webhook } = await import('./webhook.ts');
  return new Webhook({
    url: webhookUrl.reveal(),
    secret: webhookSecret.reveal(),
    timeoutMs: webhookTimeoutMs,
  });
}
