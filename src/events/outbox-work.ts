/**
 * Empties the outbox: appends its events to the stream, and moves its rows to the webhook's pages.
 *
 *   read the oldest rows -> append their events, a part at a time -> remove the rows (and queue them for the webhook)
 *
 * Why the events of an order come in order and none is left out, and what is left if the process dies:
 * docs/internals/events.md.
 */
import type { EventPart, EventStream } from '../engine/contract.ts';
import { chunksOf } from '../lib/chunks-of.ts';
import { type Outbox, PART_EVENTS } from './outbox.ts';
import type { RelayEvents } from './relay-events.ts';
import { Contested } from './sole-loop.ts';

export interface OutboxWorkOptions {
  readonly outbox: Outbox;
  readonly stream?: { readonly events: EventStream; readonly maxEvents: number } | undefined;
  /** Whether a webhook is configured. */
  readonly forWebhook: boolean;
  readonly events: Pick<RelayEvents, 'streamed' | 'displaced'>;
}

/** One page. @returns how long to rest, in milliseconds; `undefined`: there was none. @throws Contested */
export async function emptyOutbox(options: OutboxWorkOptions): Promise<number | undefined> {
  const { outbox, stream, forWebhook, events } = options;
  if (await outbox.isEmpty()) return undefined;
  const { rows, parts } = stream ? await outbox.read() : await outbox.readRows();
  // Another process has removed them since.
  if (rows.length === 0) return undefined;
  for (const call of callsOf(parts)) {
    const displaced = await stream?.events.append(call, stream.maxEvents);
    events.streamed({ events: eventsIn(call) });
    if (displaced && (displaced.events > 0 || displaced.unseen !== undefined)) events.displaced(displaced);
  }
  if ((await outbox.remove(rows, { forWebhook })) < rows.length) throw new Contested();
  return 0;
}

/** The parts of each call to the stream: small ones go together. */
function callsOf(parts: readonly EventPart[]): readonly EventPart[][] {
  // A part whose orders are no longer in Postgres has no events.
  const withEvents = parts.filter(({ events }) => events > 0);
  return chunksOf(withEvents, PART_EVENTS, ({ events }) => events);
}

function eventsIn(parts: readonly EventPart[]): number {
  return parts.reduce((sum, part) => sum + part.events, 0);
}
