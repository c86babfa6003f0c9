import type { LogEntry, LogPosition, LogRead, TakeOrder, Watermark } from '../../engine/contract.ts';
import { after } from './log-chain.ts';

/** The part of one segment's log that one transaction applies. */
export interface Slice {
  readonly from: LogPosition;
  readonly to: LogPosition;
  readonly entries: readonly LogEntry[];
  readonly units: number;
}

/** The log entries that one transaction applies, of any number of segments and sales. */
export interface Batch {
  /** Sorted by sale and segment: two syncs then insert the same orders, and lock the same rows, in the same order. */
  readonly slices: readonly Slice[];
  readonly orders: number;
}

/**
 * Takes whole entries from the reads until `maxOrders` is reached, but at least one. Entries that do not fit are read
 * again.
 */
export function batchOf(reads: readonly LogRead[], maxOrders: number): Batch {
  const slices: Slice[] = [];
  let orders = 0;
  for (const { position, entries } of reads) {
    let taken = 0;
    let units = 0;
    while (taken < entries.length) {
      const entry = entries[taken]!;
      if (orders > 0 && orders + entry.orders.length > maxOrders) break;
      orders += entry.orders.length;
      units += unitsOf(entry.orders);
      taken++;
    }
    if (taken === 0) continue;
    const to = after(position, entries[taken - 1]!);
    slices.push({ from: position, to, entries: entries.slice(0, taken), units });
  }
  return {
    slices: slices.sort((a, b) => compare(a.from.saleId, b.from.saleId) || a.from.segment - b.from.segment),
    orders,
  };
}

export function watermarksOf(
  { slices }: Batch,
  rejected: Map<string, Watermark['rejected'][number]>,
): Watermark[] {
  return slices.map(({ to, entries }) => ({
    saleId: to.saleId,
    segment: to.segment,
    generation: to.generation,
    seq: to.seq,
    orders: entries.at(-1)!.ordersSoFar,
    tails: entries.map((entry) => entry.tail),
    rejected:
      rejected.size === 0
        ? []
        : entries.flatMap((entry) => entry.orders.flatMap((order) => rejected.get(order.orderId) ?? [])),
  }));
}

/**
 * The newest watermark of each segment, with the rejections of all, so that unannounced watermarks do not pile up.
 */
export function newestOf(watermarks: readonly Watermark[]): Watermark[] {
  const newest = new Map<string, Watermark>();
  for (const watermark of watermarks) {
    const name = `${watermark.saleId}:${watermark.segment}:${watermark.generation}`;
    const older = newest.get(name)?.rejected ?? [];
    newest.set(
      name,
      older.length === 0 ? watermark : { ...watermark, rejected: [...older, ...watermark.rejected] },
    );
  }
  return [...newest.values()];
}

export function unitsOf(orders: readonly TakeOrder[]): number {
  let units = 0;
  for (const order of orders) units += order.quantity;
  return units;
}

/** By UTF-16 code unit, which for sale ids (ASCII) is the database's order under COLLATE "C". */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
