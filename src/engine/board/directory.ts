import type { SaleRecord } from '../contract.ts';

/** A sale as a worker sees it: its record, and its place on the node's board. */
export interface SaleView {
  readonly record: SaleRecord;
  readonly slot: number;
}

/**
 * What an engine is told of the sales, in the order in which it happens. It is told in no other way: a view that took another
 * road could arrive after the news that its slot is over, and the slot may belong to another sale by then (slots.ts).
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
  /** Reads the sale from the backend if the node does not know it. The listener is told of it before this resolves. */
  lookup(saleId: string): Promise<unknown>;
  /**
   * A segment did not know this generation. Asks the backend again. The listener is told of a newer generation before
   * this resolves; if there is none, sync is notified.
   */
  refresh(saleId: string, generation: number): Promise<unknown>;
  /** Tells the listener of all known sales, and from then on of each change. */
  listen(listener: SaleListener): void;
}
