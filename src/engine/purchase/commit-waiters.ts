import { Fifo } from '../../lib/fifo.ts';
import type { Rejection, Watermark } from '../contract.ts';
import { type LivePurchase, NO_PURCHASES } from './purchase.ts';

/** Rejections are remembered for takes whose replies come after the watermark that rejects them. */
const MAX_REMEMBERED_REJECTIONS = 10_000;
/** So are the names of entries. */
const MAX_REMEMBERED_ENTRIES = 256;
/**
 * Purchases of one segment and generation that are taken and wait for Postgres. A watermark settles all up to its position: as
 * committed, or, where it names an order, as what the guard in Postgres said instead.
 *
 * A backend that has lost writes gives the numbers of lost entries to others, so that a number alone proves nothing. If no
 * watermark names the entry of a purchase, the buyer's record has to be read: the entry may be lost, or the message that named
 * it; and the entry of a repeated purchase has no name here. Such purchases are handed back as `checking`.
 */
export class CommitWaiters {
  /** In the order of their log entries. */
  readonly #waiting = new Fifo<LivePurchase>();
  /** Repeated purchases: their orders are in older entries than others that are waited for. */
  readonly #replays = new Fifo<LivePurchase>();
  /** Those of which the record could not say more: the next generation, or their deadline, will. */
  readonly #unresolved = new Fifo<LivePurchase>();
  readonly #rejected = new Map<string, Rejection['reason']>();
  readonly #entries = new Map<number, string>();
  readonly #perBuyerLimit: number;
  #newest = 0;
  #watermark = 0;
  #named = false;

  constructor(perBuyerLimit: number) {
    this.#perBuyerLimit = perBuyerLimit;
  }

  get size(): number {
    return this.#waiting.length + this.#replays.length + this.#unresolved.length;
  }

  /**
   * @param purchase its log entry may be below the watermark already
   * @returns whether it is to be checked
   */
  add(purchase: LivePurchase): boolean {
    if (purchase.seq <= this.#watermark) {
      if (this.#named && purchase.entry === '') return this.#checkOnce(purchase);
      return this.#settle(purchase);
    }
    if (purchase.seq < this.#newest) enqueue(this.#replays, purchase);
    else {
      this.#newest = purchase.seq;
      enqueue(this.#waiting, purchase);
    }
    return false;
  }

  /**
   * The record of its buyer knows more than a watermark that does not name its entry. If the order is not committed by that
   * either, something is wrong with it, and to check it again would be to check it for ever.
   */
  #checkOnce(purchase: LivePurchase): boolean {
    if (purchase.wasChecked) {
      this.keep(purchase);
      return false;
    }
    purchase.check();
    return true;
  }

  /** No watermark of this generation will settle it. */
  keep(purchase: LivePurchase): void {
    enqueue(this.#unresolved, purchase);
  }

  /** @returns those that are to be checked */
  advance({ seq, rejected, tails }: Watermark): readonly LivePurchase[] {
    for (const { orderId, reason } of rejected) this.#rejected.set(orderId, reason);
    this.#named = tails !== undefined;
    for (const [i, tail] of tails?.entries() ?? []) this.#entries.set(seq - tails!.length + 1 + i, tail);
    const unnamed = seq > this.#watermark ? this.#settleUpTo(seq) : NO_PURCHASES;
    forgetOldest(this.#rejected, MAX_REMEMBERED_REJECTIONS);
    forgetOldest(this.#entries, MAX_REMEMBERED_ENTRIES);
    return unnamed;
  }

  /**
   * No take is under way, so no reply can come after its watermark. Lanes live as long as their sale: what each of them
   * remembered of its last entries would grow with every sale that was ever sold.
   */
  forget(): void {
    this.#rejected.clear();
    this.#entries.clear();
  }

  #settleUpTo(seq: number): readonly LivePurchase[] {
    const toCheck: LivePurchase[] = [];
    this.#watermark = seq;
    for (let head = this.#waiting.peek(); head && head.seq <= seq; head = this.#waiting.peek()) {
      this.#waiting.shift();
      if (this.#settle(head)) toCheck.push(head);
    }
    for (let unseen = this.#replays.length; unseen > 0; unseen--) {
      const purchase = this.#replays.shift()!;
      if (purchase.seq > seq) this.#replays.push(purchase);
      else if (this.#settle(purchase)) toCheck.push(purchase);
    }
    return toCheck;
  }

  /** All that still wait: no watermark of this generation will settle them any more. */
  drain(): LivePurchase[] {
    const left = [this.#waiting, this.#replays, this.#unresolved].flatMap((queue) => queue.drain());
    return left.filter((purchase) => !purchase.settled);
  }

  /** @returns whether it is to be checked instead */
  #settle(purchase: LivePurchase): boolean {
    if (purchase.settled) return false;
    const { seq, entry, orderId } = purchase;
    const rejected = this.#rejected.get(orderId);
    const certain = !this.#named || this.#entries.get(seq) === entry || rejected !== undefined;
    if (!certain) return this.#checkOnce(purchase);
    if (rejected === undefined) purchase.commit();
    else this.#reject(purchase, rejected);
    return false;
  }

  #reject(purchase: LivePurchase, reason: Rejection['reason']): void {
    switch (reason) {
      case 'stock':
        purchase.reject({ code: 'sold_out' });
        break;
      case 'limit':
        purchase.reject({ code: 'limit_reached', limit: this.#perBuyerLimit, orderIds: [] });
        break;
      case 'duplicate':
        purchase.giveUp();
    }
  }
}

function forgetOldest(map: Map<unknown, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
}

/** Purchases expire in the order in which they came. The expired must not pile up while nothing is committed. */
function enqueue(queue: Fifo<LivePurchase>, purchase: LivePurchase): void {
  while (queue.peek()?.settled) queue.shift();
  queue.push(purchase);
}
