/**
 * A lane's attempts to take from its segment. Each carries a newer ticket than the one before, so that the segment refuses an
 * older attempt that arrives late. Each also states what the segment has told the lane so far. If the segment has
 * less than that, it has lost writes.
 */
import {
  NO_ENTRY,
  type RefillReply,
  type SegmentRef,
  type TakeBatch,
  type TakeReply,
  type TakeServer,
  type TakeStore,
} from '../contract.ts';
import { NO_RULES } from '../sale/rules.ts';
import type { EngineEvents } from './events.ts';
import type { LivePurchase, SegmentMark } from './purchase.ts';

/**
 * Tickets are microseconds of the clock. If the clock was set back, they may be older than the segment's last one; then each
 * refused attempt raises the ticket by this much.
 */
const TICKET_LEAP = 60_000_000;

export interface TakeAttemptsParts {
  readonly takes: TakeStore;
  /** The worker's number, by which the backend knows the lane. */
  readonly worker: number;
  readonly events: EngineEvents;
}

type Told = Pick<TakeBatch, 'answeredTicket' | 'newest'> & { readonly returned: number };

export class TakeAttempts {
  readonly #parts: TakeAttemptsParts;
  readonly #place: SegmentRef;
  #ticket = 0;
  /** What the segment has told this lane. If the segment ever knows less, it has lost writes. */
  #told: Told = { answeredTicket: 0, newest: NO_ENTRY, returned: 0 };
  #server: TakeServer | undefined;

  constructor(parts: TakeAttemptsParts, place: SegmentRef) {
    this.#parts = parts;
    this.#place = place;
  }

  /** Its `returned` is from the newest reply, its `server` from the newest attempt. */
  get mark(): SegmentMark {
    return { generation: this.#place.generation, returned: this.#told.returned, server: this.#server };
  }

  /** @param orders if empty, the segment only compares what this lane was told. @throws as `TakeStore.take` */
  async take(orders: readonly LivePurchase[]): Promise<TakeReply> {
    const reply = await this.#parts.takes.take(this.#batchOf(orders));
    this.#noteTold(orders, reply);
    return reply;
  }

  /** @throws as `TakeStore.take` */
  async refillAndTake(orders: readonly LivePurchase[], segments: number): Promise<RefillReply> {
    this.#parts.events.onRefill?.();
    const reply = await this.#parts.takes.refillAndTake(this.#batchOf(orders), segments);
    if (reply.status === 'refilled') this.#noteTold(orders, reply.take);
    return reply;
  }

  #batchOf(orders: readonly LivePurchase[]): TakeBatch {
    this.#ticket = Math.max(this.#ticket + 1, Date.now() * 1_000);
    if (orders.length > 0) this.#parts.events.onBatch?.(orders.length);
    const { saleId, segment, generation } = this.#place;
    const { answeredTicket, newest } = this.#told;
    // Without spreads, because V8 would make a dictionary of the object.
    return {
      saleId,
      segment,
      generation,
      lane: this.#parts.worker,
      ticket: this.#ticket,
      answeredTicket,
      newest,
      // All orders of a batch were let in by the same rules.
      rules: orders[0]?.rules ?? NO_RULES,
      orders,
      sending: (sent, server) => {
        this.#server = server;
        for (const purchase of sent as readonly LivePurchase[]) {
          purchase.send();
          purchase.trace?.sent(segment, sent.length);
        }
      },
    };
  }

  #noteTold(orders: readonly LivePurchase[], reply: TakeReply): void {
    if (reply.status === 'superseded') this.#ticket += TICKET_LEAP;
    if (reply.status !== 'served' || reply.seq === 0) return;
    const first = orders[reply.results.findIndex(({ kind }) => kind === 'taken')];
    const { seq, orders: ordersSoFar, returned } = reply;
    const newest = first ? { seq, tail: first.orderId, orders: ordersSoFar } : this.#told.newest;
    this.#told = { answeredTicket: this.#ticket, newest, returned };
  }
}
