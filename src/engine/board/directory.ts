import type { SaleRecord } from '../contract.ts';

/** A sale as a worker sees it: its record, and its place on the node's board. */
export interface SaleView {
  readonly record: SaleRecord;
  readonly slot: number;
}

/**
 * By these calls the directory tells an engine of changes, in the order in which they happen. An engine learns of sales in no
 * other way: a view in an answer could arrive after the call that ends its slot, and another sale may have the slot by then
 * (slots.ts).
 *
 * Both resolve when this thread neither reads nor writes any older slot of the sale any more.
 */
export interface SaleListener {
  /** The newest view of a sale that is new or has changed. */
  changed(view: SaleView): void | Promise<void>;
  /** There is no such sale any more. */
  gone(saleId: string): void | Promise<void>;
}

/**
 * The source of a worker's knowledge of sales. Each node has one (SaleDirectory); a worker thread uses a link of the
 * same shape.
 */
export interface Directory {
  /** Reads the sale from the backend if the node does not know it. Tells the listener of it before it resolves. */
  lookup(saleId: string): Promise<unknown>;
  /**
   * A segment did not know this generation. Asks the backend again. Tells the listener of a newer generation before it
   * resolves; notifies sync if there is none.
   */
  refresh(saleId: string, generation: number): Promise<unknown>;
  /** Tells the listener of all known sales, and from then on of each change. */
  listen(listener: SaleListener): void;
}
