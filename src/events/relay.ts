/**
 * Sends order events to other programs: from the outbox in Postgres to a stream in Redis and to a webhook. Runs in
 * every process that runs sync; one process at a time does each of the two jobs. A slow webhook delays only itself.
 * Without stream and webhook, rows are removed unread.
 */

import type { BackpressureOptions } from '../lib/backpressure.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { Database } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { IdlePace } from './idle-pace.ts';
import { Outbox } from './outbox.ts';
import { emptyOutbox, type OutboxWorkOptions } from './outbox-work.ts';
import type { RelayEvents } from './relay-events.ts';
import { SoleLoop } from './sole-loop.ts';
import { WebhookQueue } from './webhook-queue.ts';
import { deliverPages, type WebhookWorkOptions } from './webhook-work.ts';

const COUNT_EVERY_MS = 1_000;
const NOTHING = { rows: 0, oldestMs: 0, pages: 0, oldestPageMs: 0, deadPages: 0 };

export interface RelayOptions {
  readonly db: Database;
  readonly locks: SaleLocks;
  readonly stream?: OutboxWorkOptions['stream'];
  readonly webhook?: Pick<WebhookWorkOptions, 'receiver' | 'maxAttempts' | 'retryMs'> | undefined;
  /** When events wait because of load. */
  readonly backpressure: BackpressureOptions;
  readonly events: RelayEvents;
}

export class EventRelay {
  readonly #outbox: Outbox;
  readonly #queue: WebhookQueue;
  readonly #events: RelayEvents;
  readonly #outboxLoop: SoleLoop;
  readonly #webhookLoop: SoleLoop | undefined;
  #counting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor({ db, locks, stream, webhook, backpressure, events }: RelayOptions) {
    this.#outbox = new Outbox(db);
    this.#queue = new WebhookQueue(db);
    this.#events = events;
    const work = { outbox: this.#outbox, stream, forWebhook: webhook !== undefined, events };
    this.#outboxLoop = new SoleLoop({
      locks,
      name: ':events',
      backpressure,
      step: paced(async () => {
        const restMs = await emptyOutbox(work);
        // What has waited here because of load must not wait as long again.
        if (restMs !== undefined) this.#webhookLoop?.awaited();
        return restMs;
      }),
      crashed: (error, retryMs) => events.crashed({ loop: 'outbox', error, retryMs }),
    });
    if (!webhook) return;
    const delivery = { ...webhook, queue: this.#queue, events };
    this.#webhookLoop = new SoleLoop({
      locks,
      name: ':webhook',
      backpressure,
      step: paced((signal) => deliverPages(delivery, signal)),
      crashed: (error, retryMs) => events.crashed({ loop: 'webhook', error, retryMs }),
    });
  }

  start(): void {
    this.#outboxLoop.start();
    this.#webhookLoop?.start();
    // A timer of its own, because the loops may rest for long.
    this.#timer = setInterval(() => {
      this.#counting ??= this.#countWaiting().finally(() => {
        this.#counting = undefined;
      });
    }, COUNT_EVERY_MS);
  }

  /** Ends after the page under way; a webhook request is aborted. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([this.#outboxLoop.stop(), this.#webhookLoop?.stop(), this.#counting]);
  }

  /** Reports what waits, for both loops, if this process empties the outbox. */
  async #countWaiting(): Promise<void> {
    if (!this.#outboxLoop.isWorking) return this.#events.waiting(NOTHING);
    try {
      this.#events.waiting({ ...(await this.#outbox.waiting()), ...(await this.#queue.waiting()) });
    } catch {
      // The loop gets the same error and reports it.
    }
  }
}

/** The step of a loop that looks less often when there was nothing for long. */
function paced(
  step: (signal: AbortSignal) => Promise<number | undefined>,
): (signal: AbortSignal) => Promise<number> {
  const pace = new IdlePace(monotonicMs());
  return async (signal) => pace.restMs(await step(signal), monotonicMs());
}
