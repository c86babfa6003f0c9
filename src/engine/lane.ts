/**
 * A lane: the bounded queue of one worker in front of one segment. One batch is in flight at a time; what arrives
 * meanwhile is the next batch. A batch starts in the turn of the event loop after its first purchase, so that it holds
 * all that one turn has read; the batches of all lanes start together and leave in one write (turns.ts).
 *
 * States of a batch:
 *
 *   asked ──served──> settled, or waiting for its commit ──short of stock──> asked again, behind a refill
 *     │ ──paused, closed, busy, stale──> refused: nothing was done
 *     │ ──not executed──> unavailable: nothing was done
 *     └──reply lost──> in doubt ──> asked again: same order ids, newer ticket
 *
 * A batch in doubt may or may not have been executed, or may be executed later. Asking again with the same order ids
 * tells which: an order that the buyer's record holds comes back as a replay. The newer ticket shuts the old attempt out
 * if it should still arrive. A batch in doubt is asked again until it is answered or its last purchase has expired;
 * refusals then say nothing about the first attempt, and its purchases end as `unknown`.
 */
import type { Board } from './board.ts';
import { CommitWaiters } from './commit-waiters.ts';
import {
  NO_ENTRY,
  type Outcome,
  type RefillReply,
  type SaleRecord,
  type TakeBatch,
  type TakeReply,
  type TakeResult,
  type TakeStore,
  type Watermark,
} from './contract.ts';
import { NotExecuted, OutcomeUnknown } from './errors.ts';
import { Fifo } from './fifo.ts';
import { MAX_BATCH_ORDERS } from './limits.ts';
import { monotonicMs } from './monotonic.ts';
import type { Pending } from './pending.ts';

/** Pause before a batch in doubt is asked again while the store is there but answers nothing. */
const DOUBT_PAUSE_MS = 20;
/** A clock that was set back may leave the ticket behind; this much at a time it catches up (tickets are microseconds). */
const TICKET_LEAP = 60_000_000;

/** What a lane needs of the worker it lives in. */
export interface LaneHost {
  readonly takes: TakeStore;
  readonly board: Board;
  readonly durable: boolean;
  readonly worker: number;
  readonly laneCapacity: number;
  nextOrderId(): string;
  /** Resolves in the next turn of the event loop, together with everybody else's. */
  nextTurn(): Promise<void>;
  /** Orders were taken: sync should be told. `awaited`: a buyer waits for his commit. */
  taken(saleId: string, segment: number, awaited: boolean): void;
  /** The segment does not know the generation that the lane works with. Resolves when there is a newer picture. */
  stale(saleId: string, generation: number): Promise<void>;
  /** The purchase is below a watermark that does not name its entry: the buyer's record must be asked. */
  confirm(pending: Pending): void;
  /** The sale does not sell, or not this purchase: the answer, unless the buyer's record knows the purchase's key. */
  refused(pending: Pending, outcome: Outcome): void;
  batchSent(orders: number): void;
  fault(error: unknown, saleId: string, segment: number): void;
}

/** The sale as the worker knows it now. */
export interface LaneSale {
  readonly record: SaleRecord;
  readonly slot: number;
  /** One refill of the sale at a time: it looks at all segments, and what it finds may spare the others theirs. */
  readonly refills: <T>(work: () => Promise<T>) => Promise<T>;
}

type Served = Extract<TakeReply, { status: 'served' }>;

/** What a segment must still know, because it has answered so. */
type Told = Pick<TakeBatch, 'answeredTicket' | 'newest'>;

const NOTHING_TOLD: { readonly generation: number; readonly by: Told } = {
  generation: 0,
  by: { answeredTicket: 0, newest: NO_ENTRY },
};

type Answer = {
  readonly reply: TakeReply;
  /** The generation that was asked: the reply's log entries are counted in it. */
  readonly generation: number;
  /** Units left in the whole sale, if the take was behind a refill. */
  readonly total?: number;
};

export class Lane {
  readonly segment: number;
  readonly waiters: CommitWaiters;
  readonly #host: LaneHost;
  readonly #sale: LaneSale;
  readonly #queue = new Fifo<Pending>();
  #running = false;
  #ticket = 0;
  /** What the segment has told this lane last: if it ever knows less, it has lost writes. */
  #told = NOTHING_TOLD;

  constructor(host: LaneHost, sale: LaneSale, segment: number) {
    this.#host = host;
    this.#sale = sale;
    this.segment = segment;
    this.waiters = new CommitWaiters(sale.record.sale.perBuyerLimit, (pending) => host.confirm(pending));
  }

  get depth(): number {
    return this.#queue.length;
  }

  push(pending: Pending): void {
    if (!this.#host.takes.ready) pending.settle({ code: 'unavailable' });
    else if (this.#queue.length >= this.#host.laneCapacity) pending.settle({ code: 'busy' });
    else this.#queue.push(pending);
    if (this.#running || this.#queue.length === 0) return;
    this.#running = true;
    void this.#run();
  }

  advance(watermark: Watermark): void {
    if (watermark.generation === this.#sale.record.generation) this.waiters.advance(watermark);
  }

  async #run(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        await this.#host.nextTurn();
        const batch = this.#nextBatch();
        if (batch.length > 0) await this.#serve(batch);
      }
    } catch (error) {
      // A bug of a host. Deadlines answer those who are left, and the next purchase starts the lane again.
      this.#fault(error);
    } finally {
      this.#running = false;
    }
  }

  #nextBatch(): Pending[] {
    const batch: Pending[] = [];
    const soldOut = this.#host.board.isSoldOut(this.#sale.slot);
    while (batch.length < MAX_BATCH_ORDERS) {
      const pending = this.#queue.shift();
      if (!pending) break;
      if (pending.settled) continue;
      if (soldOut && pending.key === '') pending.settle({ code: 'sold_out' });
      else if (this.#name(pending)) batch.push(pending);
    }
    return batch;
  }

  /** Gives the order its id. Without a worker number of its own a worker must not name orders. */
  #name(pending: Pending): boolean {
    try {
      pending.orderId = this.#host.nextOrderId();
      return true;
    } catch (error) {
      pending.settle({ code: 'unavailable' });
      this.#fault(error);
      return false;
    }
  }

  async #serve(batch: Pending[]): Promise<void> {
    let doubt = false;
    let refill = false;
    for (let asked = batch; asked.length > 0; asked = asked.filter((pending) => !pending.settled)) {
      try {
        const answer = refill ? await this.#refill(asked) : await this.#ask(asked);
        if (!answer) continue;
        asked = await this.#settle(asked, answer, doubt);
        if (answer.reply.status !== 'superseded') doubt = false;
        if (answer.reply.status === 'served') refill = true;
      } catch (error) {
        if (error instanceof NotExecuted && !doubt) return settleAll(asked, { code: 'unavailable' });
        if (!(error instanceof NotExecuted || error instanceof OutcomeUnknown)) {
          settleAll(asked, { code: 'unknown' });
          return this.#fault(error);
        }
        doubt = true;
        await this.#pause(asked);
      }
    }
  }

  /** @returns `undefined` if nobody is left to ask for: another lane has found the sale sold out meanwhile */
  #refill(asked: Pending[]): Promise<Answer | undefined> {
    return this.#sale.refills(async () => {
      if (this.#host.board.isSoldOut(this.#sale.slot)) {
        for (const pending of asked)
          if (pending.key === '' && pending.phase === 'queued') pending.settle({ code: 'sold_out' });
      }
      const left = asked.filter((pending) => !pending.settled);
      return left.length === asked.length ? this.#ask(asked, true) : undefined;
    });
  }

  async #ask(orders: Pending[], refill = false): Promise<Answer> {
    const { sale, generation } = this.#sale.record;
    const { takes, worker } = this.#host;
    this.#ticket = Math.max(this.#ticket + 1, Date.now() * 1_000);
    const batch = {
      saleId: sale.id,
      segment: this.segment,
      generation,
      lane: worker,
      ticket: this.#ticket,
      ...this.#toldIn(generation),
      orders,
    };
    for (const pending of orders) pending.phase = 'sent';
    this.#host.batchSent(orders.length);
    if (!refill) return { reply: await takes.take(batch), generation };
    const asked = monotonicMs();
    const { slot } = this.#sale;
    const refilled: RefillReply = await takes.refillAndTake(batch, sale.segments);
    if (refilled.status === 'stale') return { reply: refilled, generation };
    const { take: reply, total, epoch } = refilled;
    if (total === 0) this.#host.board.close(slot, epoch, asked);
    return { reply, generation, total };
  }

  #toldIn(generation: number): Told {
    return this.#told.generation === generation ? this.#told.by : NOTHING_TOLD.by;
  }

  /** @param entry first order id of the log entry that the batch has made; `''`: none */
  #noteTold({ seq, orders }: Served, entry: string, generation: number): void {
    if (seq === 0) return;
    const newest = entry === '' ? this.#toldIn(generation).newest : { seq, tail: entry, orders };
    this.#told = { generation, by: { answeredTicket: this.#ticket, newest } };
  }

  /** @returns the purchases to ask for again */
  async #settle(asked: Pending[], answer: Answer, doubt: boolean): Promise<Pending[]> {
    const { reply } = answer;
    switch (reply.status) {
      case 'served':
        return this.#settleServed(asked, reply, answer);
      case 'superseded':
        this.#ticket += TICKET_LEAP;
        return asked;
      case 'stale':
        return this.#settleStale(asked, doubt);
      case 'busy':
        settleAll(asked, { code: doubt ? 'unknown' : 'busy' });
        return [];
      default:
        if (doubt) settleAll(asked, { code: 'unknown' });
        else
          for (const pending of asked) this.#host.refused(pending, refusal(reply.status, this.#sale.record));
        return [];
    }
  }

  #settleServed(asked: Pending[], reply: Served, { generation, total }: Answer): Pending[] {
    const short: Pending[] = [];
    let entry = '';
    let awaited = !this.#host.durable;
    for (let i = 0; i < asked.length; i++) {
      const pending = asked[i]!;
      const result = reply.results[i]!;
      switch (result.kind) {
        case 'taken':
          entry ||= pending.orderId;
          awaited ||= pending.awaitCommit;
          this.#taken(pending, { seq: reply.seq, entry }, generation);
          break;
        case 'replay':
          this.replayed(pending, result, reply.committed, generation);
          break;
        case 'short':
          if (total === undefined || total >= pending.quantity) short.push(pending);
          else
            pending.settle(
              total === 0 ? { code: 'sold_out' } : { code: 'insufficient_stock', remaining: total },
            );
          break;
        case 'refused':
          this.#host.refused(pending, { code: 'refused', reason: result.reason });
          break;
        default:
          pending.settle(this.#refused(result));
      }
    }
    this.#noteTold(reply, entry, generation);
    if (entry !== '') {
      this.#host.taken(this.#sale.record.sale.id, this.segment, awaited);
    }
    for (const pending of short) pending.phase = 'queued';
    return short;
  }

  #refused(result: Extract<TakeResult, { kind: 'mismatch' | 'limit' }>): Outcome {
    if (result.kind === 'limit') {
      return {
        code: 'limit_reached',
        limit: this.#sale.record.sale.perBuyerLimit,
        orderIds: result.orderIds,
      };
    }
    return { code: 'idempotency_mismatch', orderId: result.orderId, quantity: result.quantity };
  }

  #taken(pending: Pending, at: Pick<Pending, 'seq' | 'entry'>, generation: number): void {
    pending.phase = 'taken';
    pending.seq = at.seq;
    pending.entry = at.entry;
    if (!pending.awaitCommit && this.#host.durable) {
      pending.settle({ code: 'accepted', orderId: pending.orderId, quantity: pending.quantity });
    }
    // A newer generation was built from Postgres meanwhile: whether this order was saved, nobody knows here.
    else if (generation !== this.#sale.record.generation) pending.phase = 'sent';
    else this.waiters.add(pending);
  }

  /**
   * The buyer's record, in that generation, holds this order: it is committed if the segment's cursor has passed it, else
   * it waits.
   */
  replayed(
    pending: Pending,
    order: { orderId: string; quantity: number; seq: number },
    committed: number,
    generation: number,
  ): void {
    pending.orderId = order.orderId;
    if (order.seq <= committed) {
      pending.settle({ code: 'committed', orderId: order.orderId, quantity: order.quantity });
      return;
    }
    this.#taken(pending, { seq: order.seq, entry: '' }, generation);
    // Whoever took it may have died before it told sync, or lost the reply.
    this.#host.taken(this.#sale.record.sale.id, this.segment, true);
  }

  async #settleStale(asked: Pending[], doubt: boolean): Promise<Pending[]> {
    const { sale, generation } = this.#sale.record;
    await this.#host.stale(sale.id, generation);
    if (!doubt && this.#sale.record.generation !== generation) return asked;
    settleAll(asked, { code: doubt ? 'unknown' : 'unavailable' });
    return [];
  }

  async #pause(asked: Pending[]): Promise<void> {
    const last = Math.max(...asked.map((pending) => pending.deadline));
    const { takes } = this.#host;
    if (!takes.ready) await takes.whenReady(Math.max(0, last - monotonicMs()));
    await new Promise((resolve) => setTimeout(resolve, DOUBT_PAUSE_MS));
  }

  #fault(error: unknown): void {
    this.#host.fault(error, this.#sale.record.sale.id, this.segment);
  }
}

function settleAll(pendings: Pending[], outcome: Outcome): void {
  for (const pending of pendings) pending.settle(outcome);
}

function refusal(status: 'paused' | 'closed', { sale }: SaleRecord): Outcome {
  return status === 'closed' ? { code: 'ended', endedAt: sale.endsAt } : { code: status };
}
