/**
 * Empties the outbox: its events are appended to the stream, and its rows move on to the webhook's pages.
 *
 *   read the oldest rows -> append their events, a part at a time -> remove the rows (and queue them for the webhook)
 *
 * Order. The events of an order are in rows of which the later one became visible after the earlier one, and got the
 * greater id. A row is removed only when its events are delivered, and a page begins with the oldest row that is there. So
 * whoever delivers an event has delivered those of the same order before it, or finds that somebody else has; this needs
 * no lock. A row that becomes visible late, because its transaction was slow, is simply the oldest of the next page.
 *
 * Crash points. Before the rows are removed: they are there still, and all their events are delivered once more, with the
 * same ids. A late duplicate can follow newer events of its order; the first delivery of each is in order.
 */
import type { EventPart, EventStream } from '../engine/contract.ts';
import { type Outbox, PART_EVENTS } from './outbox.ts';
import type { RelayEvents } from './relay-events.ts';
import { Contested } from './sole-loop.ts';

/** When nothing is left, the outbox is looked at this often. */
export const IDLE_MS = 100;

export interface OutboxWorkOptions {
  readonly outbox: Outbox;
  readonly stream?: { readonly events: EventStream; readonly maxEvents: number } | undefined;
  /** Whether somebody delivers the webhook's pages. */
  readonly forWebhook: boolean;
  readonly events: Pick<RelayEvents, 'streamed' | 'displaced'>;
}

/** One page. @returns how long to rest, in milliseconds. @throws Contested */
export async function emptyOutbox(options: OutboxWorkOptions): Promise<number> {
  const { outbox, stream, forWebhook, events } = options;
  const { rows, parts } = stream ? await outbox.read() : await outbox.readRows();
  if (rows.length === 0) return IDLE_MS;
  for (const call of callsOf(parts)) {
    const displaced = await stream?.events.append(call, stream.maxEvents);
    events.streamed({ events: eventsIn(call) });
    if (displaced && (displaced.events > 0 || displaced.unseen !== undefined)) events.displaced(displaced);
  }
  if ((await outbox.remove(rows, { forWebhook })) < rows.length) throw new Contested();
  return 0;
}

/** The parts of each call to the stream: small ones go together. */
function callsOf(parts: readonly EventPart[]): EventPart[][] {
  const calls: EventPart[][] = [];
  let events = PART_EVENTS;
  // One of whose orders nothing is in Postgres any more tells nothing.
  for (const part of parts.filter((part) => part.events > 0)) {
    if (events + part.events > PART_EVENTS) {
      calls.push([]);
      events = 0;
    }
    calls.at(-1)!.push(part);
    events += part.events;
  }
  return calls;
}

function eventsIn(parts: readonly EventPart[]): number {
  return parts.reduce((sum, part) => sum + part.events, 0);
}
