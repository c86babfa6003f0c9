import type { SaleRecord } from '../contract.ts';

/** A sale as a worker sees it: its record, and its place on the node's board. */
export interface SaleView {
  readonly record: SaleRecord;
  readonly slot: number;
}

/**
 * The source of a worker's knowledge of sales. Each node has one (SaleDirectory); a worker thread uses a link of the
 * same shape.
 */
export interface Directory {
  /** The newest view, read from the backend if the node does not know the sale. */
  lookup(saleId: string): Promise<SaleView | undefined>;
  /**
   * A segment did not know this generation. Asks the backend again and resolves with its view; if that is not newer,
   * sync is notified.
   */
  refresh(saleId: string, generation: number): Promise<SaleView | undefined>;
  /** Calls back with each changed view. */
  onChange(listener: (view: SaleView) => void): void;
}
