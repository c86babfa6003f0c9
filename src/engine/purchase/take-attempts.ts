/**
 * A lane's attempts to take from its segment. Each carries a ticket that is newer than the last: if the last attempt arrives
 * late, its segment refuses it. And each says what the segment has told the lane so far: a segment that has lost writes finds
 * that out by it.
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
import type { EngineEvents } from './events.ts';
import type { LivePurchase } from './purchase.ts';

/** A clock that was set back may leave the ticket behind; this much at a time it catches up (tickets are microseconds). */
const TICKET_LEAP = 60_000_000;

export interface TakeAttemptsParts {
  readonly takes: TakeStore;
  /** Names the lane to the backend. */
  readonly worker: number;
  readonly events: EngineEvents;
}

export class TakeAttempts {
  readonly #parts: TakeAttemptsParts;
  readonly #place: SegmentRef;
  #ticket = 0;
  /** If the segment ever knows less, it has lost writes. */
  #told: Pick<TakeBatch, 'answeredTicket' | 'newest'> = { answeredTicket: 0, newest: NO_ENTRY };

  constructor(parts: TakeAttemptsParts, place: SegmentRef) {
    this.#parts = parts;
    this.#place = place;
  }

  /** @param orders none: the segment only compares what this lane was told. @throws as `TakeStore.take` */
  async take(orders: readonly LivePurchase[]): Promise<TakeReply> {
    const reply = await this.#parts.takes.take(this.#batchOf(orders));
    this.#noteTold(orders, reply);
    return reply;
  }

  /** @throws as `TakeStore.take` */
  async refillAndTake(orders: readonly LivePurchase[], segments: number): Promise<RefillReply> {
    const reply = await this.#parts.takes.refillAndTake(this.#batchOf(orders), segments);
    if (reply.status === 'refilled') this.#noteTold(orders, reply.take);
    return reply;
  }

  #batchOf(orders: readonly LivePurchase[]): TakeBatch {
    this.#ticket = Math.max(this.#ticket + 1, Date.now() * 1_000);
    if (orders.length > 0) this.#parts.events.onBatch?.(orders.length);
    return {
      ...this.#place,
      lane: this.#parts.worker,
      ticket: this.#ticket,
      ...this.#told,
      // A lane asks for none beside each other that were let in by different ones.
      rules: orders[0]?.rules ?? NO_RULES,
      orders,
      sending: () => {
        for (const purchase of orders) purchase.send();
      },
    };
  }

  #noteTold(orders: readonly LivePurchase[], reply: TakeReply): void {
    if (reply.status === 'superseded') this.#ticket += TICKET_LEAP;
    if (reply.status !== 'served' || reply.seq === 0) return;
    const first = orders[reply.results.findIndex(({ kind }) => kind === 'taken')];
    const { seq, orders: ordersSoFar } = reply;
    const newest = first ? { seq, tail: first.orderId, orders: ordersSoFar } : this.#told.newest;
    this.#told = { answeredTicket: this.#ticket, newest };
  }
}
