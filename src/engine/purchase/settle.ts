/**
 * What the replies of one segment, in one generation, mean for the purchases that its lane has sent:
 *
 *   sent ──served──> settled, or waits for its commit ──short of stock──> sent again, with a refill
 *     │ ──paused, closed, busy──> refused: nothing was done
 *     │ ──not executed──> unavailable: nothing was done
 *     │ ──late──> sent again, without those whose deadline is over: nothing was done
 *     │ ──outdated──> leaves: it is judged again by the rules of its segment (rules.ts)
 *     │ ──stale──> leaves: it enters its lane of the next generation, with the rest of the queue
 *     └──reply lost──> unconfirmed ──> sent again: same order id, newer ticket
 *
 * An unconfirmed purchase may have been taken, or its attempt may still be executed later. Sending it again with the same order id
 * tells which: if the buyer's record holds the order, the reply is a replay. The newer ticket makes the segment refuse the old
 * attempt if it still arrives; after a rebuild, the old generation is refused. So the purchase is sent again until it is answered
 * or has expired. A refusal of the whole batch says nothing about the first attempt, so it ends the purchase as `unknown`.
 *
 * The record does not hold an order that has ended, or that Redis has lost. If either is possible (`SegmentMark`), a refusal ends
 * the purchase as `unknown`. So does `accept`.
 *
 * Nothing here calls the store: purchases that need more than this reply are handed back (`HandedBack`).
 */
import type { Outcome, SaleRecord, SegmentRef, TakeReply, TakeResult, Watermark } from '../contract.ts';
import { NotExecuted, OutcomeUnknown } from '../errors.ts';
import { CommitWaiters } from './commit-waiters.ts';
import type { EngineEvents } from './events.ts';
import type { LogHints } from './log-hints.ts';
import { type LivePurchase, NO_PURCHASES, type SegmentMark } from './purchase.ts';
import { isFinal } from './refuse.ts';
import { type TakenOrder, UncommittedOrders } from './uncommitted-orders.ts';

/** The sale as its worker knows it now. It is replaced when the sale changes. */
export interface SaleNow {
  readonly record: SaleRecord;
  /** The sale's slot on the board. */
  readonly slot: number;
  /** There is no such sale any more. */
  readonly isGone: boolean;
}

export interface SettlementParts {
  /** Whether a taken order outlives this process, and may be called accepted. */
  readonly durable: boolean;
  readonly hints: LogHints;
  readonly events: EngineEvents;
}

/** The reply to an attempt. */
export interface AttemptReply {
  readonly reply: TakeReply;
  /** Units left in the whole sale; only after a refill. */
  readonly total?: number;
}

/** Purchases that leave their lane without an answer, and why. */
export type HandedBack =
  /** The segment does not serve this generation any more. */
  | { readonly why: 'stale'; readonly purchases: readonly LivePurchase[] }
  /** The segment has other rules than those by which the purchases were let in. */
  | { readonly why: 'outdated'; readonly purchases: readonly LivePurchase[] }
  /** No watermark will settle the purchases, so their buyers' records must be read. */
  | { readonly why: 'checking'; readonly purchases: readonly LivePurchase[] }
  /** To be refused, unless the buyer's record contains the purchase's key. */
  | { readonly why: 'refused'; readonly purchases: readonly [LivePurchase]; readonly refusal: Outcome }
  /** No purchase leaves. The store did not say whether it has lost writes, and must be asked again after a while. */
  | { readonly why: 'unchecked' };

type Served = Extract<TakeReply, { status: 'served' }>;

export class Settlement {
  readonly place: SegmentRef;
  readonly waiters: CommitWaiters;
  readonly #parts: SettlementParts;
  readonly #sale: SaleNow;
  readonly #uncommitted: UncommittedOrders;

  constructor(parts: SettlementParts, sale: SaleNow, place: SegmentRef) {
    this.#parts = parts;
    this.#sale = sale;
    this.place = place;
    this.waiters = new CommitWaiters(() => sale.record.sale.perBuyerLimit);
    this.#uncommitted = new UncommittedOrders(place.segment);
  }

  /** The sale has been rebuilt, and this belongs to an older generation. */
  get isRetired(): boolean {
    return this.#sale.record.generation !== this.place.generation;
  }

  /** Whether there are taken orders that no watermark has confirmed yet. */
  get hasUncommitted(): boolean {
    return !this.#uncommitted.isEmpty;
  }

  /** @param now the mark of the segment after the reply. @returns the purchases that must be sent again */
  onReply(
    asked: readonly LivePurchase[],
    { reply, total }: AttemptReply,
    now: SegmentMark,
    handedBack: HandedBack[],
  ): readonly LivePurchase[] {
    switch (reply.status) {
      case 'served':
        for (const purchase of asked) purchase.answered(now);
        return this.#served(asked, reply, total, handedBack);
      case 'superseded':
        return asked;
      case 'late':
        for (const purchase of asked) purchase.requeue();
        return asked;
      case 'stale':
      case 'outdated':
        this.handBack(reply.status, asked, handedBack);
        return NO_PURCHASES;
      case 'busy':
        for (const purchase of asked) {
          if (purchase.isUnconfirmed) purchase.giveUp();
          else purchase.refuse({ code: 'busy' });
        }
        return NO_PURCHASES;
      default:
        for (const purchase of asked) {
          if (purchase.isUnconfirmed) purchase.giveUp();
          else this.#refuse(purchase, this.#refusalByState(reply.status), handedBack);
        }
        return NO_PURCHASES;
    }
  }

  /**
   * The attempt failed. Purchases that are unconfirmed now must be sent again; all others are settled. After an error of an
   * unknown kind, every purchase ends as `unknown`.
   * @param at the mark of the segment after the attempt
   */
  onNoReply(asked: readonly LivePurchase[], error: unknown, at: SegmentMark): void {
    if (!(error instanceof NotExecuted || error instanceof OutcomeUnknown)) {
      for (const purchase of asked) purchase.giveUp();
      this.fault(error);
      return;
    }
    for (const purchase of asked) {
      // An order that the shop has refused under the lock was not sent.
      if (error instanceof OutcomeUnknown && !purchase.isUnsent) purchase.lose(at);
      if (!purchase.isUnconfirmed) purchase.refuse({ code: 'unavailable' });
    }
  }

  /** Hands back purchases that this segment does not serve. */
  handBack(why: 'stale' | 'outdated', asked: readonly LivePurchase[], handedBack: HandedBack[]): void {
    for (const purchase of asked) purchase.requeue();
    handedBack.push({ why, purchases: asked });
  }

  /**
   * The buyer's record holds this order. It is committed if the segment's cursor has passed it; otherwise it waits.
   * @returns `checking` if the record must be read again; `done`: it is settled, or waits for a watermark
   */
  found(
    purchase: LivePurchase,
    order: { readonly orderId: string; readonly quantity: number; readonly seq: number },
    committed: number,
  ): 'done' | 'checking' {
    purchase.find(order, this.place.generation);
    if (order.seq <= committed) {
      purchase.commit();
      return 'done';
    }
    const isChecking = this.#awaitCommit(purchase);
    this.#remember(order.seq, '', [{ ...order, buyerId: purchase.buyerId }]);
    // The worker that took the order may have died, or lost the reply, before it told sync.
    this.#parts.hints.grew(this.place.saleId, this.place.segment, true);
    return isChecking ? 'checking' : 'done';
  }

  /** @returns the purchases that must be checked */
  advance(watermark: Watermark): readonly LivePurchase[] {
    if (watermark.generation !== this.place.generation) return NO_PURCHASES;
    const toCheck = this.waiters.advance(watermark);
    this.#tellUncommitted(this.#uncommitted.advance(watermark));
    return toCheck;
  }

  /**
   * The sale has been rebuilt. Orders that were taken here and that no watermark has confirmed may be lost.
   * @returns the purchases that waited for their commit, which must be checked
   */
  retire(): readonly LivePurchase[] {
    this.#tellUncommitted(this.#uncommitted.drain());
    const waiting = this.waiters.drain();
    for (const purchase of waiting) purchase.checkAnew();
    return waiting;
  }

  /** The sale is gone: nothing will tell which of its taken orders are committed, except Postgres. */
  end(): void {
    this.#tellUncommitted(this.#uncommitted.drain());
    for (const purchase of this.waiters.drain()) purchase.giveUp();
  }

  /** Call it when no purchase waits any more. */
  close(): void {
    this.#uncommitted.drain();
  }

  fault(error: unknown): void {
    this.#parts.events.onFault?.(error, this.place.saleId, this.place.segment);
  }

  #served(
    asked: readonly LivePurchase[],
    reply: Served,
    total: number | undefined,
    handedBack: HandedBack[],
  ): readonly LivePurchase[] {
    const short: LivePurchase[] = [];
    const taken: LivePurchase[] = [];
    let entry = '';
    let awaited = !this.#parts.durable;
    for (let i = 0; i < asked.length; i++) {
      const purchase = asked[i]!;
      const result = reply.results[i]!;
      switch (result.kind) {
        case 'taken':
          entry ||= purchase.orderId;
          awaited ||= purchase.awaitCommit;
          taken.push(purchase);
          purchase.take(reply.seq, entry, this.place.generation);
          if (this.#awaitCommit(purchase)) handedBack.push({ why: 'checking', purchases: [purchase] });
          break;
        case 'replay':
          if (this.found(purchase, result, reply.committed) === 'checking')
            handedBack.push({ why: 'checking', purchases: [purchase] });
          break;
        case 'short':
          if (this.#short(purchase, total)) short.push(purchase);
          break;
        case 'unsent':
          // Its deadline has settled it already, or is about to.
          break;
        case 'refused':
          this.#refuse(purchase, { code: 'refused', reason: result.reason }, handedBack);
          break;
        default:
          purchase.refuse(this.#refusalByRecord(result));
      }
    }
    if (entry !== '') {
      this.#remember(reply.seq, entry, taken);
      this.#parts.hints.grew(this.place.saleId, this.place.segment, awaited);
    }
    return short;
  }

  /** @returns whether it must be sent again, because other segments may have enough units for it */
  #short(purchase: LivePurchase, total: number | undefined): boolean {
    const mayFit = total === undefined || total >= purchase.quantity;
    if (mayFit) purchase.requeue();
    else
      purchase.refuse(total === 0 ? { code: 'sold_out' } : { code: 'insufficient_stock', remaining: total });
    return mayFit;
  }

  /** @returns whether it must be checked, because the sale was rebuilt meanwhile or a watermark came first */
  #awaitCommit(purchase: LivePurchase): boolean {
    if (purchase.settled) return false;
    if (!purchase.awaitCommit && this.#parts.durable) {
      purchase.accept();
      return false;
    }
    if (this.#sale.isGone) {
      purchase.giveUp();
      return false;
    }
    if (!this.isRetired) return this.waiters.add(purchase);
    purchase.checkAnew();
    return true;
  }

  #remember(seq: number, entry: string, orders: readonly Omit<TakenOrder, 'segment'>[]): void {
    this.#uncommitted.add(seq, entry, orders);
    if (this.isRetired || this.#sale.isGone) this.#tellUncommitted(this.#uncommitted.drain());
  }

  #tellUncommitted(orders: readonly TakenOrder[]): void {
    if (orders.length > 0) this.#parts.events.onUncommitted?.(this.place.saleId, orders);
  }

  /** Refuses a purchase. If the refusal is not final, the purchase leaves the lane so that its buyer's record is read first. */
  #refuse(purchase: LivePurchase, refusal: Outcome, handedBack: HandedBack[]): void {
    if (isFinal(refusal, purchase)) purchase.refuse(refusal);
    else if (!purchase.settled) handedBack.push({ why: 'refused', purchases: [purchase], refusal });
  }

  #refusalByState(status: 'paused' | 'closed'): Outcome {
    return status === 'closed' ? { code: 'ended', endedAt: this.#sale.record.sale.endsAt } : { code: status };
  }

  #refusalByRecord(result: Extract<TakeResult, { kind: 'mismatch' | 'limit' }>): Outcome {
    if (result.kind === 'mismatch') {
      return { code: 'idempotency_mismatch', orderId: result.orderId, quantity: result.quantity };
    }
    const { perBuyerLimit: limit } = this.#sale.record.sale;
    return { code: 'limit_reached', limit, orderIds: result.orderIds };
  }
}
