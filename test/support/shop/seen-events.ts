/** Collects what a sync, or an expiry of unpaid orders, reports. */

import type { ExpiryEvents } from '../../../src/orders/expiry.ts';
import type { HeadEvents } from '../../../src/queue/head/head-events.ts';
import type { SyncEvents } from '../../../src/sync/held/sync-events.ts';

type Info<K extends keyof SyncEvents> = Parameters<Required<SyncEvents>[K]>[0];

/** The events that a sync has reported. */
export class SeenEvents implements SyncEvents {
  orders = 0;
  sweeps = 0;
  lastBacklog = -1;
  readonly rejections: Info<'rejected'>[] = [];
  readonly breaks: Info<'logBroken'>[] = [];
  readonly losses: Info<'ordersLost'>[] = [];
  readonly rebuilds: Info<'rebuilt'>[] = [];
  readonly transfers: Info<'transferred'>[] = [];
  readonly failures: Info<'saleFailed'>[] = [];
  readonly foreigners: Info<'foreign'>[] = [];
  readonly crashes: (Info<'crashed'> & { atMs: number })[] = [];

  applied({ orders }: Info<'applied'>): void {
    this.orders += orders;
  }
  rejected(info: Info<'rejected'>): void {
    this.rejections.push(info);
  }
  logBroken(info: Info<'logBroken'>): void {
    this.breaks.push(info);
  }
  ordersLost(info: Info<'ordersLost'>): void {
    this.losses.push(info);
  }
  rebuilt(info: Info<'rebuilt'>): void {
    this.rebuilds.push(info);
  }
  transferred(info: Info<'transferred'>): void {
    this.transfers.push(info);
  }
  backlog({ orders }: Info<'backlog'>): void {
    this.sweeps++;
    this.lastBacklog = orders;
  }
  saleFailed(info: Info<'saleFailed'>): void {
    this.failures.push(info);
  }
  untold(): void {}
  foreign(info: Info<'foreign'>): void {
    this.foreigners.push(info);
  }
  crashed(info: Info<'crashed'>): void {
    this.crashes.push({ ...info, atMs: performance.now() });
  }
}

/** The events that an expiry of unpaid orders has reported. */
export class SeenExpiry implements ExpiryEvents {
  orders = 0;
  readonly failures: unknown[] = [];

  expired({ orders }: { orders: number }): void {
    this.orders += orders;
  }
  failed({ error }: { error: unknown }): void {
    this.failures.push(error);
  }
}

/** What a head of the queues has reported. */
export class SeenHead implements HeadEvents {
  offers = 0;
  readonly failures: unknown[] = [];
  readonly draws: { saleId: string; entries: number }[] = [];
  readonly delays: string[] = [];
  absent = 0;
  limited = 0;

  offered({ offers }: { offers: number }): void {
    this.offers += offers;
  }
  passedOver({ absent, limited }: { absent: number; limited: number }): void {
    this.absent += absent;
    this.limited += limited;
  }
  delayed({ outcome }: { outcome: string }): void {
    this.delays.push(outcome);
  }
  drawn(info: { saleId: string; entries: number }): void {
    this.draws.push(info);
  }
  saleFailed({ error }: { error: unknown }): void {
    this.failures.push(error);
  }
  crashed({ error }: { error: unknown }): void {
    this.failures.push(error);
  }
}
