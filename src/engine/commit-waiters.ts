import type { Outcome, Rejection, Watermark } from './contract.ts';
import { Fifo } from './fifo.ts';
import type { Pending } from './pending.ts';

/** Rejections are remembered for takes whose replies come after the watermark that rejects them. */
const MAX_REMEMBERED_REJECTIONS = 10_000;

/**
 * Purchases of one segment that are taken and wait for Postgres. A watermark settles all up to its position: as
 * committed, or, where it names an order, as what the guard of the truth said instead.
 */
export class CommitWaiters {
  /** In the order of their log entries. */
  readonly #waiting = new Fifo<Pending>();
  /** Repeated purchases: their orders are in older entries than others that are waited for. */
  readonly #replays = new Fifo<Pending>();
  readonly #rejected = new Map<string, Rejection['reason']>();
  readonly #perBuyerLimit: number;
  #newest = 0;
  #watermark = 0;

  constructor(perBuyerLimit: number) {
    this.#perBuyerLimit = perBuyerLimit;
  }

  get size(): number {
    return this.#waiting.length + this.#replays.length;
  }

  /** `pending.seq` is the log entry that carries the order. It may be below the watermark already. */
  add(pending: Pending): void {
    if (pending.seq <= this.#watermark) this.#settle(pending);
    else if (pending.seq < this.#newest) enqueue(this.#replays, pending);
    else {
      this.#newest = pending.seq;
      enqueue(this.#waiting, pending);
    }
  }

  advance({ seq, rejected }: Watermark): void {
    for (const { orderId, reason } of rejected) this.#rejected.set(orderId, reason);
    if (seq > this.#watermark) this.#settleUpTo(seq);
    for (const orderId of this.#rejected.keys()) {
      if (this.#rejected.size <= MAX_REMEMBERED_REJECTIONS) break;
      this.#rejected.delete(orderId);
    }
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

  /** Another generation counts its entries anew. Who still waits is answered at his deadline. */
  reset(): void {
    while (this.#waiting.shift() || this.#replays.shift()) {}
    this.#rejected.clear();
    this.#newest = 0;
    this.#watermark = 0;
  }

  #settle(pending: Pending): void {
    pending.settle(this.#outcome(pending));
  }

  #outcome({ orderId, quantity }: Pending): Outcome {
    switch (this.#rejected.get(orderId)) {
      case undefined:
        return { code: 'committed', orderId, quantity };
      case 'stock':
        return { code: 'sold_out' };
      case 'limit':
        return { code: 'limit_reached', limit: this.#perBuyerLimit, orderIds: [] };
    }
  }
}

/** Who waits expires in the order of his coming. The expired must not pile up while nothing is committed. */
function enqueue(queue: Fifo<Pending>, pending: Pending): void {
  while (queue.peek()?.settled) queue.shift();
  queue.push(pending);
}
