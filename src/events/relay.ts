/**
 * Tells other programs what happens to orders: from the outbox in Postgres to a stream in Redis and to a webhook. Runs
 * wherever sync runs; one process at a time works on each of the two. A webhook that is slow or away holds up nothing but
 * itself. With neither of the two, rows are removed as they come: nobody wants them.
 */

import type { BackpressureOptions } from '../lib/backpressure.ts';
import type { Database } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { Outbox } from './outbox.ts';
import { emptyOutbox, type OutboxWorkOptions } from './outbox-work.ts';
import type { RelayEvents } from './relay-events.ts';
import { SoleLoop } from './sole-loop.ts';
import { WebhookQueue } from './webhook-queue.ts';
import { deliverPages, type WebhookWorkOptions } from './webhook-work.ts';

const LOOK_EVERY_MS = 1_000;
const NOTHING = { rows: 0, oldestMs: 0, pages: 0, oldestPageMs: 0, deadPages: 0 };

export interface RelayOptions {
  readonly db: Database;
  readonly locks: SaleLocks;
  readonly stream?: OutboxWorkOptions['stream'];
  readonly webhook?: Pick<WebhookWorkOptions, 'receiver' | 'maxAttempts' | 'retryMs'> | undefined;
  /** When events wait for others to have the processor. */
  readonly backpressure: BackpressureOptions;
  readonly events: RelayEvents;
}

export class EventRelay {
  readonly #outbox: Outbox;
  readonly #queue: WebhookQueue;
  readonly #events: RelayEvents;
  readonly #outboxLoop: SoleLoop;
  readonly #webhookLoop: SoleLoop | undefined;
  #looking: Promise<void> | undefined;
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
      step: () => emptyOutbox(work),
      crashed: (error, retryMs) => events.crashed({ loop: 'outbox', error, retryMs }),
    });
    if (!webhook) return;
    const delivery = { ...webhook, queue: this.#queue, events };
    this.#webhookLoop = new SoleLoop({
      locks,
      name: ':webhook',
      backpressure,
      step: (signal) => deliverPages(delivery, signal),
      crashed: (error, retryMs) => events.crashed({ loop: 'webhook', error, retryMs }),
    });
  }

  start(): void {
    this.#outboxLoop.start();
    this.#webhookLoop?.start();
    // Beside the loops, because they may rest for long.
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
      });
    }, LOOK_EVERY_MS);
  }

  /** Ends after the page under way; a request to the webhook is broken off. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([this.#outboxLoop.stop(), this.#webhookLoop?.stop(), this.#looking]);
  }

  /** Counts what waits, if this process is the one that empties the outbox: it speaks for both loops. */
  async #look(): Promise<void> {
    if (!this.#outboxLoop.isWorking) return this.#events.waiting(NOTHING);
    try {
      this.#events.waiting({ ...(await this.#outbox.waiting()), ...(await this.#queue.waiting()) });
    } catch {
      // The loop meets the same, and tells.
    }
  }
}
