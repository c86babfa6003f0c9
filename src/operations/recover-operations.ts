/** Requests and reports of rebuilds that operators start. */
import type { TakenOrder } from '../engine/purchase/uncommitted-orders.ts';

export interface SegmentLosses {
  readonly segment: number;
  /** Lower bound of the lost orders. */
  readonly orders: number;
  /** The lost orders that nodes could name, the first NAMED_ORDERS of the sale. */
  readonly named: readonly TakenOrder[];
}

/** The progress of a rebuild. What is counted depends on the step: logs read, orders loaded, steps of the publication. */
export interface RebuildProgress {
  readonly step: 'salvage' | 'load' | 'publish';
  readonly done: number;
  readonly total: number;
}

export interface RecoveryReport {
  readonly generation: number;
  readonly tookMs: number;
  /** Orders that the logs still held; missing if another process rebuilt the sale. */
  readonly salvagedOrders?: number;
  /** Salvaged orders that Postgres has refused. */
  readonly rejectedOrders?: number;
  readonly loadedBuyers?: number;
  /** Accepted orders that are lost for good, by segment; empty: none. */
  readonly losses: readonly SegmentLosses[];
}

export type Recovery =
  | { readonly saleId: string; readonly state: 'none' }
  | ({
      readonly saleId: string;
      readonly state: 'running';
    } & Omit<RebuildProgress, 'step'> & {
        /** wait: another process rebuilds the sale. names: the sale sells, and nodes may still name lost orders. */
        readonly step: 'wait' | RebuildProgress['step'] | 'names';
      })
  | { readonly saleId: string; readonly state: 'failed'; readonly problem: string }
  | ({ readonly saleId: string; readonly state: 'done' } & RecoveryReport);

export interface RecoverOperations {
  /**
   * Starts a rebuild of the sale from Postgres unless one is under way; does not wait for its end. @throws
   * UnknownSale
   */
  recover(saleId: string): Promise<Recovery>;
  /** The progress of the rebuild in the process that got the request. @throws UnknownSale */
  recovery(saleId: string): Promise<Recovery>;
}
