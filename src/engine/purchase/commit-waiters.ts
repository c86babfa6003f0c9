import { Fifo } from '../../lib/fifo.ts';
import type { Rejection, Watermark } from '../contract.ts';
import { type LivePurchase, NO_PURCHASES } from './purchase.ts';

/** Rejections are remembered, because the reply to a take may come after the watermark that rejects its orders. */
const MAX_REMEMBERED_REJECTIONS = 10_000;
/** The names of entries are remembered for the same reason. */
const MAX_REMEMBERED_ENTRIES = 256;

/**
 * Purchases of one segment and generation that are taken and wait for Postgres. A watermark settles all of them up to its
 * position: as rejected if it lists their orders as rejected by Postgres, otherwise as committed.
 *
 * A backend that has lost writes reuses the numbers of lost entries, so a number alone proves nothing. If no watermark names the
 * entry of a purchase, the buyer's record must be read, because the entry or the message that named it may be lost. The same
 * holds for a repeated purchase if the name of its entry is not known here. Such purchases are handed back as `checking`.
 */
export class CommitWaiters {
  /** In the order of their log entries. */
  readonly #waiting = new Fifo<LivePurchase>();
  /** Repeated purchases, whose orders may be in older entries than the newest one here. */
  readonly #replays = new Fifo<LivePurchase>();
  /** Purchases that neither a watermark nor their buyer's record has settled. The next generation or their deadline will. */
  readonly #unresolved = new Fifo<LivePurchase>();
  readonly #rejected = new Map<string, Rejection['reason']>();
  readonly #entries = new Map<number, string>();
  readonly #perBuyerLimit: () => number;
  #newest = 0;
  #watermark = 0;
  #named = false;

  /** @param perBuyerLimit the sale's present limit, which may rise */
  constructor(perBuyerLimit: () => number) {
    this.#perBuyerLimit = perBuyerLimit;
  }

  get size(): number {
    return this.#waiting.length + this.#replays.length + this.#unresolved.length;
  }

  /**
   * @param purchase a taken purchase; its log entry may already be below the watermark
   * @returns whether it must be checked
   */
  add(purchase: LivePurchase): boolean {
    if (purchase.seq <= this.#watermark) return this.#settle(purchase);
    if (purchase.seq < this.#newest) enqueue(this.#replays, purchase);
    else {
      this.#newest = purchase.seq;
      enqueue(this.#waiting, purchase);
    }
    return false;
  }

  /**
   * Has the buyer's record read, because the watermark does not name the purchase's entry. This happens once: if the record does
   * not settle the purchase either, reading it again would not help.
   */
  #checkOnce(purchase: LivePurchase): boolean {
    if (purchase.wasChecked) {
      this.keep(purchase);
      return false;
    }
    purchase.check();
    return true;
  }

  /** Keeps a purchase that no watermark of this generation will settle. */
  keep(purchase: LivePurchase): void {
    enqueue(this.#unresolved, purchase);
  }

  /** @returns the purchases that must be checked */
  advance({ seq, rejected, tails }: Watermark): readonly LivePurchase[] {
    for (const { orderId, reason } of rejected) this.#rejected.set(orderId, reason);
    this.#named = tails !== undefined;
    for (const [i, tail] of tails?.entries() ?? []) this.#entries.set(seq - tails!.length + 1 + i, tail);
    const toCheck = seq > this.#watermark ? this.#settleUpTo(seq) : NO_PURCHASES;
    forgetOldest(this.#rejected, MAX_REMEMBERED_REJECTIONS);
    forgetOldest(this.#entries, MAX_REMEMBERED_ENTRIES);
    return toCheck;
  }

  /**
   * Forgets rejections and names of entries. Call it when no take is under way, so that no reply can need them. A lane lives as
   * long as a generation of its sale, so without this the memory in use would grow with every sale.
   */
  forget(): void {
    // `clear` gives a map a new table, even if it is empty already.
    if (this.#rejected.size > 0) this.#rejected.clear();
    if (this.#entries.size > 0) this.#entries.clear();
  }

  #settleUpTo(seq: number): readonly LivePurchase[] {
    const toCheck: LivePurchase[] = [];
    this.#watermark = seq;
    for (let head = this.#waiting.peek(); head && head.seq <= seq; head = this.#waiting.peek()) {
      this.#waiting.shift();
      if (this.#settle(head)) toCheck.push(head);
    }
    for (let left = this.#replays.length; left > 0; left--) {
      const purchase = this.#replays.shift()!;
      if (purchase.seq > seq) this.#replays.push(purchase);
      else if (this.#settle(purchase)) toCheck.push(purchase);
    }
    return toCheck;
  }

  /** Removes and returns all that still wait. Call it when no watermark of this generation will settle them any more. */
  drain(): LivePurchase[] {
    const left = [this.#waiting, this.#replays, this.#unresolved].flatMap((queue) => queue.drain());
    return left.filter((purchase) => !purchase.settled);
  }

  /** @returns whether the purchase was not settled and must be checked */
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
        purchase.reject({ code: 'limit_reached', limit: this.#perBuyerLimit(), orderIds: [] });
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

/** Adds a purchase, and removes expired ones from the front, so that they do not pile up while nothing is committed. */
function enqueue(queue: Fifo<LivePurchase>, purchase: LivePurchase): void {
  while (queue.peek()?.settled) queue.shift();
  queue.push(purchase);
}
