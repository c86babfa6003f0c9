/**
 * Delivers the webhook's pages, strictly one request after the other.
 *
 *   waiting ──2xx──> removed
 *      │ ^──anything else: attempts + 1, after a pause that doubles──┐
 *      │ └────────────────────────────────────────────────────────────┘
 *      └──the last attempt has failed──> dead letter ──re-sent by an operator──> waiting, before all younger pages
 *
 * Crash points. Before the request: nothing has happened. After it, before the page is removed: the receiver has the
 * events and gets them once more, with the same ids. If a failure can't be counted, the page gets one attempt more. A
 * shutdown aborts the request and does not count it.
 */
import { inspect } from 'node:util';
import { monotonicMs } from '../lib/monotonic.ts';
import type { Receiver } from './order-event.ts';
import type { RelayEvents } from './relay-events.ts';
import { Contested } from './sole-loop.ts';
import type { Delivery, WebhookQueue } from './webhook-queue.ts';

const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 60_000;

export interface WebhookWorkOptions {
  readonly queue: WebhookQueue;
  readonly receiver: Receiver;
  readonly maxAttempts: number;
  readonly events: Pick<RelayEvents, 'posted' | 'postFailed' | 'gaveUp'>;
  /** The pause after `attempts` failures, in milliseconds. */
  readonly retryMs?: (attempts: number) => number;
}

/** One request. @returns how long to rest, in milliseconds; `undefined`: no page waits. @throws Contested */
export async function deliverPages(
  options: WebhookWorkOptions,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { queue, receiver, events } = options;
  const delivery = (await queue.isEmpty()) ? undefined : await queue.next();
  if (!delivery) return undefined;
  const began = monotonicMs();
  try {
    // Empty if the orders were removed from Postgres.
    if (delivery.events.length > 0) await receiver.deliver(delivery.events, signal);
  } catch (error) {
    if (signal.aborted) return 0;
    return failed(options, delivery, error);
  }
  events.posted({ events: delivery.events.length, tookMs: monotonicMs() - began });
  if ((await queue.remove(delivery.pages)) < delivery.pages.length) throw new Contested();
  return 0;
}

async function failed(options: WebhookWorkOptions, delivery: Delivery, error: unknown): Promise<number> {
  const { queue, maxAttempts, events, retryMs = pauseAfter } = options;
  const { pages } = delivery;
  const attempts = delivery.attempts + 1;
  const reason = error instanceof Error ? error.message : error;
  // A program may throw anything, also an object that can't become a text.
  const why =
    typeof reason === 'string' ? reason : inspect(reason, { breakLength: Number.POSITIVE_INFINITY });
  const { dead, found } = await queue.failed(pages, maxAttempts, why);
  const pauseMs = retryMs(attempts);
  const report = { error, events: delivery.events.length, attempts };
  // Pages that share a request have the same attempts, so either all of them are dead letters now, or none.
  const areDead = dead.length > 0;
  events.postFailed({ ...report, retryMs: areDead ? undefined : pauseMs });
  if (areDead) events.gaveUp({ ...report, pages: dead });
  if (found < pages.length) throw new Contested();
  return pauseMs;
}

/**
 * A pause that doubles with each attempt, randomly between half and all of it, so that many shops do not retry at the
 * same moment.
 */
export function pauseAfter(attempts: number): number {
  const most = Math.min(RETRY_FIRST_MS * 2 ** (attempts - 1), RETRY_MAX_MS);
  return most * (0.5 + Math.random() / 2);
}
