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
  readonly #waiting = new Fifo<Pending>();
  readonly #rejected = new Map<string, Rejection['reason']>();
  readonly #perBuyerLimit: number;
  #watermark = 0;

  constructor(perBuyerLimit: number) {
    this.#perBuyerLimit = perBuyerLimit;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** `pending.seq` is the log entry that carries the order. It may be below the watermark already. */
  add(pending: Pending): void {
    if (pending.seq <= this.#watermark) this.#settle(pending);
    else this.#waiting.push(pending);
  }

  advance(watermark: Watermark): void {
    for (const { orderId, reason } of watermark.rejected) {
      if (this.#rejected.size < MAX_REMEMBERED_REJECTIONS) this.#rejected.set(orderId, reason);
    }
    if (watermark.seq <= this.#watermark) return;
    this.#watermark = watermark.seq;
    for (let head = this.#waiting.peek(); head && head.seq <= this.#watermark; head = this.#waiting.peek()) {
      this.#waiting.shift();
      if (!head.settled) this.#settle(head);
    }
  }

  /** Another generation counts its entries anew. Who still waits is answered at his deadline. */
  reset(): void {
    while (this.#waiting.shift()) {}
    this.#rejected.clear();
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
