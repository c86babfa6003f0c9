/**
 * Whether the next place of a queue waits for more units than are free. It is looked up only while units lie free in a queue with
 * `fit: wait`, from the position of the head on. So the cost does not follow the length of the queue.
 */
import { LRUCache } from 'lru-cache';
import type { QueueStatus } from '../../operations/queue/queue-operations.ts';
import type { Database } from '../../postgres/database.ts';
import type { SaleRow } from '../../sales/sale-rows.ts';
import { orderOf } from '../drawing.ts';
import { DrawnLine, FifoLine, type Line } from '../line.ts';
import { isAbsent } from '../presence.ts';
import type { QueueState } from '../queue-state.ts';

/** Drawn orders that are kept, because the console looks every two seconds: 80 MB each at most. */
const MAX_KEPT = 2;

export class NextPlace {
  readonly #db: Database;
  /** By the hash of the entries, which covers the sale. */
  readonly #drawn = new LRUCache<string, Promise<Line>>({ max: MAX_KEPT });

  constructor(db: Database) {
    this.#db = db;
  }

  /** @returns `undefined` also if nobody waits, the places are not drawn yet, or the next buyer is absent and will be passed over */
  async waitsForUnits({ sale }: SaleRow, state: QueueState): Promise<QueueStatus['waitsForUnits']> {
    const { freeUnits = 0, head, lastNumber } = state;
    if (sale.queue?.fit !== 'wait' || freeUnits === 0 || head >= lastNumber) return undefined;
    const line = await this.#lineOf(state, sale.queue.order === 'draw');
    const [next] = (await line?.waiting(this.#db, head, 1)) ?? [];
    if (!next || next.quantity <= freeUnits || (await isAbsent(this.#db, sale.id, next.number)))
      return undefined;
    return { number: next.number, quantity: next.quantity };
  }

  #lineOf({ saleId, head, draw }: QueueState, isDrawn: boolean): Line | Promise<Line> | undefined {
    const { drawn, seed } = draw;
    if (!drawn) return isDrawn ? undefined : new FifoLine(saleId);
    // Behind those that took part in the draw, places are in the order of their numbers.
    if (head >= drawn.entries) return new FifoLine(saleId);
    const known = this.#drawn.get(drawn.entriesHash);
    if (known) return known;
    const line = orderOf(seed, drawn).then((order) => new DrawnLine(saleId, order));
    line.catch(() => this.#drawn.delete(drawn.entriesHash));
    this.#drawn.set(drawn.entriesHash, line);
    return line;
  }
}
