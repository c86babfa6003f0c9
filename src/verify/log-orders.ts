import { LRUCache } from 'lru-cache';
import type { Backend, HeldOrder, LogPosition, SegmentRef, TakeOrder } from '../engine/contract.ts';
import { groupBy } from '../lib/group-by.ts';

/** Entries read at a time. */
const LOG_READ_ENTRIES = 16;
/** Cached log orders of one segment: about 20 MB with the longest ids. */
const REMEMBERED_LOG_ORDERS = 50_000;

/** The orders of one segment's log, by the entries that records name. */
export class LogOrders {
  readonly #backend: Backend;
  readonly #ref: SegmentRef;
  readonly #read = new LRUCache<number, readonly TakeOrder[]>({
    maxSize: REMEMBERED_LOG_ORDERS,
    sizeCalculation: (orders) => Math.max(orders.length, 1),
  });

  constructor(backend: Backend, ref: SegmentRef) {
    this.#backend = backend;
    this.#ref = ref;
  }

  /**
   * Finds each record's order in the log entry that the record names. An unreadable log has no matches; it is
   * reported separately.
   */
  async find(held: readonly HeldOrder[]): Promise<Map<HeldOrder, TakeOrder>> {
    const found = new Map<HeldOrder, TakeOrder>();
    const bySeq = groupBy(held, ({ seq }) => seq);
    const match = (seq: number, orders: readonly TakeOrder[]) => {
      for (const recorded of bySeq.get(seq) ?? []) {
        const order = orders.find(({ orderId }) => orderId === recorded.orderId);
        if (order) found.set(recorded, order);
      }
    };
    const seqs = [...bySeq.keys()].filter((seq) => seq > 0).sort((a, b) => a - b);
    let next = 1;
    for (const seq of seqs) {
      const known = this.#read.get(seq);
      if (known) match(seq, known);
      if (known || seq < next) continue;
      const position: LogPosition = { ...this.#ref, seq: seq - 1, tail: '' };
      const [read] = await this.#backend.log.readLog([position], LOG_READ_ENTRIES);
      for (const entry of read!.entries) {
        this.#read.set(entry.seq, entry.orders);
        match(entry.seq, entry.orders);
      }
      next = (read!.entries.at(-1)?.seq ?? seq) + 1;
    }
    return found;
  }
}
