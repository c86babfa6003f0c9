import { Fifo } from '../../lib/fifo.ts';
import type { Watermark } from '../contract.ts';

/** Of one lane. What is forgotten first is the oldest: the likeliest to be committed. */
const MAX_REMEMBERED_ORDERS = 10_000;

/** An order that this worker was told is taken. */
export interface TakenOrder {
  readonly segment: number;
  readonly orderId: string;
  readonly buyerId: string;
  readonly quantity: number;
}

/** Orders that one log entry holds. */
interface TakenEntry {
  readonly seq: number;
  /** The entry's name; `''`: not known. */
  readonly tail: string;
  readonly orders: number;
  readonly packed: Buffer;
}

/**
 * The orders of one lane that no watermark has named yet: if the sale is built anew, the backend may have lost them, and
 * nobody else may know who has bought. Postgres is asked then, so that to remember one too many does no harm.
 *
 * A number alone proves nothing (commit-waiters.ts): an entry stays until it is named. One that was named in a message that
 * got lost stays until there is no more room. If its number is another entry's, the backend has lost writes.
 *
 * Packed, and outside of V8's heap: an object per order would live until its commit, and be copied and promoted by the
 * collector, while all else of a purchase dies young.
 */
export class UncommittedOrders {
  readonly #segment: number;
  /** In the order of their numbers, but for those that were asked for again. */
  readonly #entries = new Fifo<TakenEntry>();
  readonly #unnamed = new Fifo<TakenEntry>();
  #orders = 0;

  constructor(segment: number) {
    this.#segment = segment;
  }

  get isEmpty(): boolean {
    return this.#orders === 0;
  }

  /** @param tail `''` if these orders were taken before, and the name of their entry is not known */
  add(seq: number, tail: string, orders: readonly Omit<TakenOrder, 'segment'>[]): void {
    let lines = '';
    for (const { orderId, buyerId, quantity } of orders) lines += `${orderId} ${buyerId} ${quantity}\n`;
    // Ids are ASCII (limits.ts).
    this.#entries.push({ seq, tail, orders: orders.length, packed: Buffer.from(lines, 'latin1') });
    this.#orders += orders.length;
    while (this.#orders > MAX_REMEMBERED_ORDERS) this.#forget(this.#unnamed.shift() ?? this.#entries.shift());
  }

  /** @returns orders whose number has gone to another entry, which nobody else may notice; they are forgotten here */
  advance({ seq, tails }: Watermark): TakenOrder[] {
    const replaced: TakenOrder[] = [];
    const first = seq - (tails?.length ?? 0) + 1;
    for (let head = this.#entries.peek(); head && head.seq <= seq; head = this.#entries.peek()) {
      this.#entries.shift();
      const named = tails?.[head.seq - first];
      if (tails && (named === undefined || head.tail === '')) {
        this.#unnamed.push(head);
        continue;
      }
      this.#forget(head);
      if (tails && named !== head.tail) replaced.push(...this.#unpack(head));
    }
    return replaced;
  }

  /** All of them; none is left. */
  drain(): TakenOrder[] {
    this.#orders = 0;
    return [...this.#unnamed.drain(), ...this.#entries.drain()].flatMap((entry) => this.#unpack(entry));
  }

  #forget(entry: TakenEntry | undefined): void {
    this.#orders -= entry?.orders ?? 0;
  }

  #unpack({ packed }: TakenEntry): TakenOrder[] {
    const lines = packed.toString('latin1').split('\n').slice(0, -1);
    return lines.map((line) => {
      const [orderId, buyerId, quantity] = line.split(' ') as [string, string, string];
      return { segment: this.#segment, orderId, buyerId, quantity: Number(quantity) };
    });
  }
}
