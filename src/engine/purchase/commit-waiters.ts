import { Fifo } from '../../lib/fifo.ts';
import type { Outcome, Rejection, Watermark } from '../contract.ts';
import type { Pending } from './pending.ts';

/** Rejections are remembered for takes whose replies come after the watermark that rejects them. */
const MAX_REMEMBERED_REJECTIONS = 10_000;
/** So are the names of entries. */
const MAX_REMEMBERED_ENTRIES = 256;

/**
 * Purchases of one segment and generation that are taken and wait for Postgres. A watermark settles all up to its position: as
 * committed, or, where it names an order, as what the guard of the truth said instead.
 *
 * A backend that has lost writes gives the numbers of lost entries to others, so that a number alone proves nothing. A
 * purchase whose entry the watermarks have not named is doubtful, and the buyer's record is asked: its entry may be lost,
 * or the message that named it; and of a repeated purchase nobody here knows what its entry is called.
 */
export class CommitWaiters {
  /** In the order of their log entries. */
  readonly #waiting = new Fifo<Pending>();
  /** Repeated purchases: their orders are in older entries than others that are waited for. */
  readonly #replays = new Fifo<Pending>();
  /** Those of which the record could not say more: the next generation, or their deadline, will. */
  readonly #doubtful = new Fifo<Pending>();
  readonly #rejected = new Map<string, Rejection['reason']>();
  readonly #entries = new Map<number, string>();
  readonly #perBuyerLimit: number;
  readonly #ask: (pending: Pending) => void;
  #newest = 0;
  #watermark = 0;
  #named = false;

  /** @param ask asks the buyer's record what became of a purchase, and settles or adds it again */
  constructor(perBuyerLimit: number, ask: (pending: Pending) => void) {
    this.#perBuyerLimit = perBuyerLimit;
    this.#ask = ask;
  }

  get size(): number {
    return this.#waiting.length + this.#replays.length + this.#doubtful.length;
  }

  /** `pending.seq` is the log entry that carries the order. It may be below the watermark already. */
  add(pending: Pending): void {
    if (pending.seq <= this.#watermark) {
      if (this.#named && pending.entry === '') this.#askOnce(pending);
      else this.#settle(pending);
    } else if (pending.seq < this.#newest) enqueue(this.#replays, pending);
    else {
      this.#newest = pending.seq;
      enqueue(this.#waiting, pending);
    }
  }

  /**
   * The record of its buyer knows more than a watermark that does not name its entry. If the order is not committed by that
   * either, something is wrong with it, and asking again would be asking for ever.
   */
  #askOnce(pending: Pending): void {
    if (pending.wasAsked) this.doubt(pending);
    else {
      pending.wasAsked = true;
      this.#ask(pending);
    }
  }

  /** No watermark of this generation will settle it. */
  doubt(pending: Pending): void {
    enqueue(this.#doubtful, pending);
  }

  advance({ seq, rejected, tails }: Watermark): void {
    for (const { orderId, reason } of rejected) this.#rejected.set(orderId, reason);
    this.#named = tails !== undefined;
    for (const [i, tail] of tails?.entries() ?? []) this.#entries.set(seq - tails!.length + 1 + i, tail);
    if (seq > this.#watermark) this.#settleUpTo(seq);
    forgetOldest(this.#rejected, MAX_REMEMBERED_REJECTIONS);
    forgetOldest(this.#entries, MAX_REMEMBERED_ENTRIES);
  }

  /**
   * No take is under way, so that no reply can come behind its watermark. Lanes live as long as their sale: what each of them
   * remembered of its last entries would grow with every sale that was ever sold.
   */
  forget(): void {
    this.#rejected.clear();
    this.#entries.clear();
  }

  #settleUpTo(seq: number): void {
    this.#watermark = seq;
    for (let head = this.#waiting.peek(); head && head.seq <= seq; head = this.#waiting.peek()) {
      this.#waiting.shift();
      this.#settle(head);
    }
    for (let unseen = this.#replays.length; unseen > 0; unseen--) {
      const pending = this.#replays.shift()!;
      if (pending.seq <= seq) this.#settle(pending);
      else this.#replays.push(pending);
    }
  }

  /** Those who wait still: no watermark of this generation will settle them any more. */
  drain(): Pending[] {
    const left = [this.#waiting, this.#replays, this.#doubtful].flatMap((queue) => queue.drain());
    return left.filter((pending) => !pending.settled);
  }

  #settle(pending: Pending): void {
    const { seq, entry, orderId } = pending;
    const certain = !this.#named || this.#entries.get(seq) === entry || this.#rejected.has(orderId);
    if (certain) pending.settle(this.#outcome(pending));
    else if (!pending.settled) this.#askOnce(pending);
  }

  #outcome({ orderId, quantity }: Pending): Outcome {
    switch (this.#rejected.get(orderId)) {
      case undefined:
        return { code: 'committed', orderId, quantity };
      case 'stock':
        return { code: 'sold_out' };
      case 'limit':
        return { code: 'limit_reached', limit: this.#perBuyerLimit, orderIds: [] };
      case 'duplicate':
        return { code: 'unknown' };
    }
  }
}

function forgetOldest(map: Map<unknown, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
}

/** Who waits expires in the order of his coming. The expired must not pile up while nothing is committed. */
function enqueue(queue: Fifo<Pending>, pending: Pending): void {
  while (queue.peek()?.settled) queue.shift();
  queue.push(pending);
}
