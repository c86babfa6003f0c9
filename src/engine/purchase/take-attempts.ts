/**
 * A lane's takes from its segment. Each attempt carries a ticket that is newer than the last, which shuts the last one
 * out if it should still arrive; and what the segment has told the lane so far, by which a segment that has lost writes
 * is found out.
 */
import {
  NO_ENTRY,
  type RefillReply,
  type SegmentRef,
  type TakeBatch,
  type TakeReply,
  type TakeStore,
} from '../contract.ts';
import { NO_RULES } from '../sale/rules.ts';
import type { Pending } from './pending.ts';

/** A clock that was set back may leave the ticket behind; this much at a time it catches up (tickets are microseconds). */
const TICKET_LEAP = 60_000_000;

export interface TicketedTakesHost {
  readonly takes: TakeStore;
  /** Names the lane to the backend. */
  readonly worker: number;
  batchSent(orders: number): void;
}

export class TicketedTakes {
  readonly #host: TicketedTakesHost;
  readonly #place: SegmentRef;
  #ticket = 0;
  /** If the segment ever knows less, it has lost writes. */
  #told: Pick<TakeBatch, 'answeredTicket' | 'newest'> = { answeredTicket: 0, newest: NO_ENTRY };

  constructor(host: TicketedTakesHost, place: SegmentRef) {
    this.#host = host;
    this.#place = place;
  }

  /** @param orders none: the segment only compares what this lane was told. @throws as `TakeStore.take` */
  async take(orders: readonly Pending[]): Promise<TakeReply> {
    const reply = await this.#host.takes.take(this.#batchOf(orders));
    this.#noteTold(orders, reply);
    return reply;
  }

  /** @throws as `TakeStore.take` */
  async refillAndTake(orders: readonly Pending[], segments: number): Promise<RefillReply> {
    const reply = await this.#host.takes.refillAndTake(this.#batchOf(orders), segments);
    if (reply.status === 'refilled') this.#noteTold(orders, reply.take);
    return reply;
  }

  #batchOf(orders: readonly Pending[]): TakeBatch {
    this.#ticket = Math.max(this.#ticket + 1, Date.now() * 1_000);
    if (orders.length > 0) this.#host.batchSent(orders.length);
    return {
      ...this.#place,
      lane: this.#host.worker,
      ticket: this.#ticket,
      ...this.#told,
      // A lane asks for none beside each other that were let in by different ones.
      rules: orders[0]?.rules ?? NO_RULES,
      orders,
      sending: () => {
        for (const pending of orders) pending.phase = 'sent';
      },
    };
  }

  #noteTold(orders: readonly Pending[], reply: TakeReply): void {
    if (reply.status === 'superseded') this.#ticket += TICKET_LEAP;
    if (reply.status !== 'served' || reply.seq === 0) return;
    const first = orders[reply.results.findIndex(({ kind }) => kind === 'taken')];
    const { seq, orders: ordersSoFar } = reply;
    const newest = first ? { seq, tail: first.orderId, orders: ordersSoFar } : this.#told.newest;
    this.#told = { answeredTicket: this.#ticket, newest };
  }
}
