import type { SaleRecord } from '../contract.ts';

/** A sale as a worker sees it: its record, and its place on the node's board. */
export interface SaleView {
  readonly record: SaleRecord;
  readonly slot: number;
}

/**
 * Where a worker learns of sales. One directory per node knows them (SaleDirectory); in worker threads a link of the
 * same shape stands for it.
 */
export interface Directory {
  /** The newest view, read from the backend if the node does not know the sale. */
  lookup(saleId: string): Promise<SaleView | undefined>;
  /**
   * A segment did not know this generation. Resolves with the view after the backend was asked again; if it has nothing
   * newer, sync is told.
   */
  refresh(saleId: string, generation: number): Promise<SaleView | undefined>;
  /** Calls back with each changed view. */
  onChange(listener: (view: SaleView) => void): void;
}
