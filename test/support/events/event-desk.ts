/** A shop with one sale, and relays for its events. The relays end before the stores do. */

import { EventRelay, type RelayOptions } from '../../../src/events/relay.ts';
import { type Database, rows } from '../../../src/postgres/database.ts';
import { until } from '../fixtures.ts';
import { Shop, type ShopOptions } from '../shop/shop.ts';
import { insertEvent, insertOrders, readStream, SeenRelayEvents } from './event-log.ts';

export const MAX_EVENTS = 100_000;

export interface DeskRelay {
  readonly seen: SeenRelayEvents;
  stop(): Promise<void>;
}

export class Desk implements AsyncDisposable {
  readonly shop: Shop;
  readonly saleId: string;
  readonly #relays: DeskRelay[] = [];

  private constructor(shop: Shop, saleId: string) {
    this.shop = shop;
    this.saleId = saleId;
  }

  static async open(options: ShopOptions = {}): Promise<Desk> {
    const shop = await Shop.open(options);
    return new Desk(shop, (await shop.sell({ stock: 100_000, segments: 2 })).id);
  }

  get db(): Database {
    return this.shop.db;
  }

  startRelay(options: Partial<RelayOptions> = {}): DeskRelay {
    const { db, backend, locks } = this.shop;
    const seen = new SeenRelayEvents();
    const backpressure = { isLoadHigh: () => false, maxMs: 0 };
    const stream = backend.events && { events: backend.events, maxEvents: MAX_EVENTS };
    const relay = new EventRelay({ db, locks, stream, backpressure, events: seen, ...options });
    relay.start();
    let stopped: Promise<void> | undefined;
    const started = { seen, stop: () => (stopped ??= relay.stop()) };
    this.#relays.push(started);
    return started;
  }

  orders(count: number): Promise<string[]> {
    return insertOrders(this.db, this.saleId, count);
  }

  event(kind: string, orderIds: readonly string[]): Promise<void> {
    return insertEvent(this.db, kind, orderIds);
  }

  stream() {
    return readStream(this.shop.redisUrl, this.shop.keyPrefix);
  }

  async outboxRows(): Promise<number> {
    return (await rows(this.db, 'SELECT 1 FROM order_events')).length;
  }

  /** Waits until the outbox is empty. */
  async emptied(): Promise<void> {
    await until(async () => (await this.outboxRows()) === 0, { what: 'the outbox is empty' });
  }

  /** Waits until nothing waits for the webhook, except dead letters. */
  async delivered(): Promise<void> {
    await this.emptied();
    const waiting = 'SELECT 1 FROM webhook_pages WHERE dead_at IS NULL';
    await until(async () => (await rows(this.db, waiting)).length === 0, { what: 'no page waits' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#relays.map((relay) => relay.stop()));
    await this.shop[Symbol.asyncDispose]();
  }
}
