/**
 * A lane: the bounded queue of one worker in front of one segment, in one generation. One batch is in flight at a time;
 * what arrives meanwhile is the next batch. A batch starts in the turn of the event loop after its first purchase, so that
 * it holds all that one turn has read; the batches of all lanes start together and leave in one write (tick-scheduler.ts).
 *
 * What becomes of the purchases of a batch:
 *
 *   asked ──served──> settled, or waiting for its commit ──short of stock──> asked again, behind a refill
 *     │ ──paused, closed, busy──> refused: nothing was done
 *     │ ──not executed──> unavailable: nothing was done
 *     │ ──outdated──> let in anew, by the rules that its segment goes by (rules.ts), or refused by them
 *     │ ──stale──> stranded: it seeks its lane in the next generation, with all that are queued here
 *     └──reply lost──> in doubt ──> asked again: same order id, newer ticket
 *
 * A purchase in doubt may or may not have been taken, or may be taken later. Asking again with the same order id tells
 * which: an order that the buyer's record holds comes back as a replay. The newer ticket shuts the old attempt out if it
 * should still arrive; in the next generation the old one's segments do. So it is asked again until it is answered or has
 * expired; a refusal says nothing about the first attempt, and ends it as `unknown`.
 *
 * A store that was away may have gone back behind what this lane was told is taken, and perhaps nobody buys here again. So
 * the lane then sends a take of nothing, by which the segment finds that out as by any other.
 *
 * When the sale has been built anew, its lanes are past: no purchase comes any more, the queue is handed over, and what
 * is in flight is settled or stranded when its reply is there.
 */

import { Fifo } from '../../lib/fifo.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import type { Board } from '../board/board.ts';
import type { Outcome, SaleRecord, SegmentRef, TakeReply, TakeResult, Watermark } from '../contract.ts';
import { NotExecuted, OutcomeUnknown } from '../errors.ts';
import { MAX_BATCH_ORDERS } from '../limits.ts';
import { NO_RULES } from '../sale/rules.ts';
import { CommitWaiters } from './commit-waiters.ts';
import type { Pending } from './pending.ts';
import { TicketedTakes, type TicketedTakesHost } from './take-attempts.ts';
import { type TakenOrder, TakenOrders } from './uncommitted-orders.ts';

/** Pause before a batch in doubt is asked again while the store is there but answers nothing. */
const DOUBT_PAUSE_MS = 20;
/** Pause before the store is asked again whether it has gone back. */
const CHECK_PAUSE_MS = 1_000;

/** What a lane needs of the worker it lives in. */
export interface LaneHost extends TicketedTakesHost {
  readonly board: Board;
  readonly durable: boolean;
  readonly laneCapacity: number;
  /** Nobody joins a queue whose first has waited longer, in milliseconds. */
  readonly maxQueueMs: number;
  nextOrderId(): string;
  /** Resolves in the next turn of the event loop, together with everybody else's. */
  nextTurn(): Promise<void>;
  /** Orders were taken: sync should be told. `awaited`: a buyer waits for his commit. */
  taken(saleId: string, segment: number, awaited: boolean): void;
  /** The sale has been built anew, and nobody has told of these orders of its past that they are committed. */
  outlived(saleId: string, orders: readonly TakenOrder[]): void;
  /** The segment does not serve this generation any more: they seek their lanes in the next one. */
  stranded(pendings: readonly Pending[], saleId: string, generation: number): void;
  /** The sale has other rules than those by which they were let in, or will have: nothing was done for them. */
  outdated(pendings: readonly Pending[], saleId: string): void;
  /** No watermark will say what became of the order: the buyer's record must be asked. */
  confirm(pending: Pending): void;
  /** The sale does not sell, or not this purchase: the answer, unless the buyer's record knows the purchase's key. */
  refused(pending: Pending, outcome: Outcome): void;
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

interface Answer {
  readonly reply: TakeReply;
  /** Units left in the whole sale, if the take was behind a refill. */
  readonly total?: number;
}

export class Lane {
  readonly place: SegmentRef;
  readonly waiters: CommitWaiters;
  readonly #host: LaneHost;
  readonly #sale: LaneSale;
  readonly #segments: number;
  readonly #takes: TicketedTakes;
  readonly #queue = new Fifo<Pending>();
  readonly #uncommitted: TakenOrders;
  #running = false;
  #isShedding = false;
  #isUnsure = false;
  #checkAgain: NodeJS.Timeout | undefined;

  /** In the sale's present generation. */
  constructor(host: LaneHost, sale: LaneSale, segment: number) {
    const { sale: definition, generation } = sale.record;
    this.#host = host;
    this.#sale = sale;
    this.#segments = definition.segments;
    this.place = { saleId: definition.id, segment, generation };
    this.#takes = new TicketedTakes(host, this.place);
    this.#uncommitted = new TakenOrders(segment);
    this.waiters = new CommitWaiters(definition.perBuyerLimit, (pending) => host.confirm(pending));
  }

  get depth(): number {
    return this.#queue.length;
  }

  push(pending: Pending): void {
    if (!this.#host.takes.ready) pending.settle({ code: 'unavailable' });
    else if (this.#isFull) {
      this.#isShedding = true;
      pending.settle({ code: 'busy' });
    } else this.readmit(pending);
  }

  /** Somebody was refused, and nobody has left the queue since: whoever comes now would be refused as well. */
  get isShedding(): boolean {
    return this.#isShedding;
  }

  get #isFull(): boolean {
    const first = this.#queue.peek();
    if (!first) return false;
    const { laneCapacity, maxQueueMs } = this.#host;
    return this.#queue.length >= laneCapacity || monotonicMs() - first.queuedAt > maxQueueMs;
  }

  /** For one that was let in before, into a lane of an older generation: it is counted already. */
  readmit(pending: Pending): void {
    pending.queuedAt = monotonicMs();
    this.#queue.push(pending);
    this.#start();
  }

  /** The store is there again, and may have gone back. Whoever knows of orders that may be lost by that has to ask. */
  check(): void {
    if (this.#isPast || this.#uncommitted.isEmpty) return;
    this.#isUnsure = true;
    this.#start();
  }

  /** When nobody waits any more. */
  close(): void {
    clearTimeout(this.#checkAgain);
    this.#uncommitted.drain();
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  /** @returns the queue, which is empty now */
  drain(): Pending[] {
    this.#isShedding = false;
    return this.#queue.drain();
  }

  /** The sale has been built anew: what was taken here and not told of since may be lost. */
  outlive(): void {
    this.#ask(this.#uncommitted.drain());
  }

  #ask(orders: readonly TakenOrder[]): void {
    if (orders.length > 0) this.#host.outlived(this.place.saleId, orders);
  }

  advance(watermark: Watermark): void {
    if (watermark.generation !== this.place.generation) return;
    this.waiters.advance(watermark);
    if (!this.#running) this.waiters.forget();
    this.#ask(this.#uncommitted.advance(watermark));
  }

  /** The sale has been built anew. */
  get #isPast(): boolean {
    return this.#sale.record.generation !== this.place.generation;
  }

  async #run(): Promise<void> {
    try {
      while (this.#queue.length > 0 || this.#isUnsure) {
        await this.#host.nextTurn();
        const batch = this.#nextBatch();
        if (batch.length > 0) await this.#serve(batch);
        else if (this.#isUnsure) await this.#checkNow();
      }
    } catch (error) {
      // A bug of a host. Deadlines answer those who are left, and the next purchase starts the lane again.
      this.#fault(error);
    } finally {
      this.#isShedding = false;
      this.#running = false;
      this.waiters.forget();
    }
  }

  /** Whatever is answered, a segment that is not closed has looked. If it has lost writes it is shut, and is built anew. */
  async #checkNow(): Promise<void> {
    this.#isUnsure = false;
    try {
      await this.#takes.take([]);
    } catch (error) {
      if (!(error instanceof NotExecuted || error instanceof OutcomeUnknown)) return this.#fault(error);
      clearTimeout(this.#checkAgain);
      this.#checkAgain = setTimeout(() => this.check(), CHECK_PAUSE_MS).unref();
    }
  }

  #nextBatch(): Pending[] {
    const batch: Pending[] = [];
    const outdated: Pending[] = [];
    const { rules = NO_RULES } = this.#sale.record;
    this.#isShedding = false;
    const soldOut = this.#host.board.isSoldOut(this.#sale.slot);
    while (batch.length < MAX_BATCH_ORDERS) {
      const pending = this.#queue.shift();
      if (!pending) break;
      if (pending.settled) continue;
      if (soldOut && pending.key === '' && !pending.inDoubt) pending.settle({ code: 'sold_out' });
      else if (pending.rules !== rules) outdated.push(pending);
      else if (this.#name(pending)) batch.push(pending);
    }
    if (outdated.length > 0) this.#host.outdated(outdated, this.place.saleId);
    return batch;
  }

  /** Gives the order its id, once. Without a worker number of its own a worker must not name orders. */
  #name(pending: Pending): boolean {
    try {
      pending.orderId ||= this.#host.nextOrderId();
      return true;
    } catch (error) {
      pending.settle({ code: 'unavailable' });
      this.#fault(error);
      return false;
    }
  }

  async #serve(batch: Pending[]): Promise<void> {
    let refill = false;
    for (let asked = batch; asked.length > 0; asked = asked.filter((pending) => !pending.settled)) {
      if (this.#isPast) return this.#strand(asked);
      try {
        const answer = refill ? await this.#refill(asked) : { reply: await this.#takes.take(asked) };
        if (!answer) continue;
        asked = this.#settle(asked, answer);
        if (answer.reply.status === 'served') refill = true;
      } catch (error) {
        await this.#failed(asked, error);
      }
    }
  }

  /** @returns `undefined` if fewer are left to ask for: another lane has found the sale sold out meanwhile */
  #refill(asked: Pending[]): Promise<Answer | undefined> {
    return this.#sale.refills(async () => {
      if (this.#isPast) return undefined;
      if (this.#host.board.isSoldOut(this.#sale.slot)) {
        for (const pending of asked)
          if (pending.key === '' && pending.phase === 'queued') pending.settle({ code: 'sold_out' });
      }
      const left = asked.filter((pending) => !pending.settled);
      return left.length === asked.length ? this.#refillAndTake(asked) : undefined;
    });
  }

  async #refillAndTake(orders: Pending[]): Promise<Answer> {
    const asked = monotonicMs();
    const { slot } = this.#sale;
    const refilled = await this.#takes.refillAndTake(orders, this.#segments);
    if (refilled.status === 'stale') return { reply: refilled };
    const { take: reply, total, epoch } = refilled;
    if (total === 0) this.#host.board.close(slot, epoch, asked);
    return { reply, total };
  }

  /** @returns the purchases to ask for again */
  #settle(asked: Pending[], answer: Answer): Pending[] {
    const { reply } = answer;
    switch (reply.status) {
      case 'served':
        return this.#settleServed(asked, reply, answer.total);
      case 'superseded':
        return asked;
      case 'stale':
        this.#strand(asked);
        return [];
      case 'outdated':
        for (const pending of asked) if (!pending.inDoubt) pending.phase = 'queued';
        this.#host.outdated(asked, this.place.saleId);
        return [];
      case 'busy':
        for (const pending of asked) pending.settle({ code: pending.inDoubt ? 'unknown' : 'busy' });
        return [];
      default: {
        const outcome = refusal(reply.status, this.#sale.record);
        for (const pending of asked) {
          if (pending.inDoubt) pending.settle({ code: 'unknown' });
          else this.#host.refused(pending, outcome);
        }
        return [];
      }
    }
  }

  #settleServed(asked: Pending[], reply: Served, total: number | undefined): Pending[] {
    const short: Pending[] = [];
    const taken: Pending[] = [];
    let entry = '';
    let awaited = !this.#host.durable;
    for (let i = 0; i < asked.length; i++) {
      const pending = asked[i]!;
      const result = reply.results[i]!;
      pending.inDoubt = false;
      switch (result.kind) {
        case 'taken':
          entry ||= pending.orderId;
          awaited ||= pending.awaitCommit;
          taken.push(pending);
          this.#taken(pending, { seq: reply.seq, entry });
          break;
        case 'replay':
          this.replayed(pending, result, reply.committed);
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
        case 'unsent':
          break;
        default:
          pending.settle(this.#refused(result));
      }
    }
    if (entry !== '') {
      this.#remember(reply.seq, entry, taken);
      this.#host.taken(this.place.saleId, this.place.segment, awaited);
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

  #taken(pending: Pending, at: Pick<Pending, 'seq' | 'entry'>): void {
    pending.phase = 'taken';
    pending.seq = at.seq;
    pending.generation = this.place.generation;
    pending.entry = at.entry;
    if (!pending.awaitCommit && this.#host.durable) {
      pending.settle({ code: 'accepted', orderId: pending.orderId, quantity: pending.quantity });
    }
    // A newer generation was built from Postgres meanwhile: its record says whether this order was saved.
    else if (this.#isPast) this.#host.confirm(pending);
    else this.waiters.add(pending);
  }

  #remember(seq: number, entry: string, orders: readonly Pending[]): void {
    this.#uncommitted.add(seq, entry, orders);
    if (this.#isPast) this.outlive();
  }

  /** The buyer's record holds this order: it is committed if the segment's cursor has passed it, else it waits. */
  replayed(
    pending: Pending,
    order: { orderId: string; quantity: number; seq: number },
    committed: number,
  ): void {
    pending.orderId = order.orderId;
    if (order.seq <= committed) {
      pending.settle({ code: 'committed', orderId: order.orderId, quantity: order.quantity });
      return;
    }
    this.#taken(pending, { seq: order.seq, entry: '' });
    this.#remember(order.seq, '', [pending]);
    // Whoever took it may have died before it told sync, or lost the reply.
    this.#host.taken(this.place.saleId, this.place.segment, true);
  }

  /** What is queued would be answered the same. */
  #strand(asked: readonly Pending[]): void {
    for (const pending of asked) if (!pending.inDoubt) pending.phase = 'queued';
    this.#host.stranded([...asked, ...this.drain()], this.place.saleId, this.place.generation);
  }

  async #failed(asked: readonly Pending[], error: unknown): Promise<void> {
    if (!(error instanceof NotExecuted || error instanceof OutcomeUnknown)) {
      for (const pending of asked) pending.settle({ code: 'unknown' });
      return this.#fault(error);
    }
    for (const pending of asked) {
      if (error instanceof OutcomeUnknown) pending.inDoubt = true;
      if (pending.inDoubt) pending.phase = 'sent';
      else pending.settle({ code: 'unavailable' });
    }
    const left = asked.filter((pending) => !pending.settled);
    if (left.length > 0) await this.#pause(left);
  }

  async #pause(asked: readonly Pending[]): Promise<void> {
    const last = Math.max(...asked.map((pending) => pending.deadline));
    const { takes } = this.#host;
    if (!takes.ready) await takes.whenReady(Math.max(0, last - monotonicMs()));
    await new Promise((resolve) => setTimeout(resolve, DOUBT_PAUSE_MS));
  }

  #fault(error: unknown): void {
    this.#host.fault(error, this.place.saleId, this.place.segment);
  }
}

function refusal(status: 'paused' | 'closed', { sale }: SaleRecord): Outcome {
  return status === 'closed' ? { code: 'ended', endedAt: sale.endsAt } : { code: status };
}
