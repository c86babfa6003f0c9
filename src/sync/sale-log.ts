import type { LogHead, LogPosition } from '../engine/contract.ts';
import type { Cursor } from './cursors.ts';

/** The cursors of one sale, as this sync has applied them, and which of its logs may have more. */
export class SaleLog {
  readonly saleId: string;
  readonly generation: number;
  readonly #cursors: LogPosition[];
  readonly #applied: number[];
  readonly #headOrders: number[];
  readonly #grown = new Set<number>();

  constructor(saleId: string, cursors: readonly Cursor[]) {
    this.saleId = saleId;
    this.generation = cursors[0]?.generation ?? 0;
    this.#cursors = cursors.map(({ segment, generation, seq, tail }) => ({
      saleId,
      segment,
      generation,
      seq,
      tail,
    }));
    this.#applied = cursors.map((cursor) => cursor.orders);
    this.#headOrders = [...this.#applied];
  }

  get positions(): readonly LogPosition[] {
    return this.#cursors;
  }

  get hasGrown(): boolean {
    return this.#grown.size > 0;
  }

  /** Orders that the heads were seen to hold beyond the cursors. */
  get backlog(): number {
    return this.#headOrders.reduce((sum, orders, i) => sum + Math.max(0, orders - this.#applied[i]!), 0);
  }

  grow(segments: Iterable<number>): void {
    for (const segment of segments) if (segment < this.#cursors.length) this.#grown.add(segment);
  }

  /** The positions of the logs that have grown; they count as read from now on, so that later hints are not missed. */
  takeGrown(): LogPosition[] {
    const positions = [...this.#grown].map((segment) => this.#cursors[segment]!);
    this.#grown.clear();
    return positions;
  }

  sawHead(segment: number, head: LogHead): void {
    this.#headOrders[segment] = head.orders;
  }

  applied(to: LogPosition, orders: number): void {
    this.#cursors[to.segment] = to;
    this.#applied[to.segment] = orders;
  }
}
