import { Fifo } from '../../lib/fifo.ts';
import type { Watermark } from '../contract.ts';

/** Bound for each lane. Beyond it the oldest orders are forgotten, because they are the likeliest to be committed. */
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
  /** The entry's name; `''` if it is not known. */
  readonly tail: string;
  readonly orders: number;
  readonly packed: Buffer;
}

/**
 * The orders of one lane that no watermark has named yet. If the sale is rebuilt, the backend may have lost them, and no other
 * process may know their buyers. They are then looked up in Postgres, so it does no harm to remember an order for too long.
 *
 * The number in a watermark does not prove that an entry is committed (commit-waiters.ts), so an entry stays until a watermark
 * names it. If the message that named it got lost, it stays until there is no more room. If a watermark names another entry with
 * its number, the backend has lost writes.
 *
 * The orders are packed into buffers, which are outside of V8's heap. An object per order would live until its commit, so the
 * collector would copy and promote it, while all other objects of a purchase die young.
 */
export class UncommittedOrders {
  readonly #segment: number;
  /** In the order of their numbers, except for orders that a repeated request found. */
  readonly #entries = new Fifo<TakenEntry>();
  /** Entries that are older than the newest watermark, which did not name them. */
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

  /**
   * @returns the orders of entries whose number another entry has now. They are forgotten here; the caller must report them,
   * because no other process may notice
   */
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

  /** Removes and returns all orders. */
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
