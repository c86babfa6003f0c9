/** Order events for tests: written directly, read from the stream, received by a webhook, and checked. */
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { OrderEvent } from '../../../src/events/order-event.ts';
import type { RelayEvents } from '../../../src/events/relay-events.ts';
import { type Database, rows } from '../../../src/postgres/database.ts';

let ordersMade = 0;

/** Inserts orders of one unit directly into Postgres, without an event. @returns their ids */
export async function insertOrders(db: Database, saleId: string, count: number): Promise<string[]> {
  const from = ordersMade + 1;
  ordersMade += count;
  const made = await rows<{ id: string }>(
    db,
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
     SELECT n, ?, 'buyer-' || n, 1, true FROM generate_series(?::bigint, ?::bigint) AS n RETURNING order_id::text AS id`,
    [saleId, from, ordersMade],
  );
  return made.map(({ id }) => id);
}

/** A row of the outbox. */
export async function insertEvent(
  db: Pick<Database, 'raw'>,
  kind: string,
  orderIds: readonly string[],
): Promise<void> {
  await db.raw('INSERT INTO order_events (kind, order_ids) VALUES (?, ?::bigint[])', [
    kind,
    `{${orderIds.join(',')}}`,
  ]);
}

/** All events in the stream, the oldest first. */
export async function readStream(url: string, keyPrefix: string): Promise<OrderEvent[]> {
  const redis = new Redis(url);
  try {
    const entries = await redis.xrange(`${keyPrefix}events`, '-', '+');
    return entries.map(([, fields]) => {
      const values = Object.fromEntries(
        fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1]]] : [])),
      );
      return { ...values, quantity: Number(values.quantity) } as unknown as OrderEvent;
    });
  } finally {
    redis.disconnect();
  }
}

/** The events without repeated ids, as a reader of the stream sees them. */
export function firstDeliveries(events: readonly OrderEvent[]): OrderEvent[] {
  const seen = new Set<string>();
  return events.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/** The kinds of each order's events, in the order of their first delivery. */
export function storiesOf(events: readonly OrderEvent[]): Map<string, string[]> {
  const stories = new Map<string, string[]>();
  for (const { orderId, kind } of firstDeliveries(events)) {
    stories.set(orderId, [...(stories.get(orderId) ?? []), kind.replace('order.', '')]);
  }
  return stories;
}

/** Expects that each of these orders has these events, and that no other order has any. */
export function expectStories(
  events: readonly OrderEvent[],
  orderIds: readonly string[],
  story: readonly string[],
): void {
  const stories = storiesOf(events);
  expect([...stories.keys()].sort()).toEqual([...orderIds].sort());
  for (const [orderId, kinds] of stories) expect(kinds, `order ${orderId}`).toEqual(story);
}

type Info<K extends keyof RelayEvents> = Parameters<RelayEvents[K]>[0];

/** The events that a relay has reported. */
export class SeenRelayEvents implements RelayEvents {
  streamedEvents = 0;
  postedEvents = 0;
  lastWaiting: Info<'waiting'> | undefined;
  readonly displacements: Info<'displaced'>[] = [];
  readonly failures: Info<'postFailed'>[] = [];
  readonly deaths: Info<'gaveUp'>[] = [];
  readonly crashes: Info<'crashed'>[] = [];

  streamed({ events }: Info<'streamed'>): void {
    this.streamedEvents += events;
  }
  displaced(info: Info<'displaced'>): void {
    this.displacements.push(info);
  }
  posted({ events }: Info<'posted'>): void {
    this.postedEvents += events;
  }
  postFailed(info: Info<'postFailed'>): void {
    this.failures.push(info);
  }
  gaveUp(info: Info<'gaveUp'>): void {
    this.deaths.push(info);
  }
  waiting(info: Info<'waiting'>): void {
    this.lastWaiting = info;
  }
  crashed(info: Info<'crashed'>): void {
    this.crashes.push(info);
  }
}
