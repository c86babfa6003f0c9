/** Rebuilds that operators ask for: what they ask, and what they are told of it. */
import type { TakenOrder } from '../engine/purchase/uncommitted-orders.ts';

export interface SegmentLosses {
  readonly segment: number;
  /** At least so many. */
  readonly orders: number;
  /** Those of them that a node could name, the first NAMED_ORDERS of the sale. */
  readonly named: readonly TakenOrder[];
}

/** How far a rebuild is. Logs are salvaged, orders are loaded. */
export interface RebuildProgress {
  readonly step: 'salvage' | 'load' | 'publish';
  readonly done: number;
  readonly total: number;
}

export interface RecoveryReport {
  readonly generation: number;
  readonly tookMs: number;
  /** Orders that the logs still held; missing if another process has built the sale meanwhile. */
  readonly salvagedOrders?: number;
  /** Salvaged orders that Postgres has refused. */
  readonly rejectedOrders?: number;
  readonly loadedBuyers?: number;
  /** Accepted orders that are gone for good. */
  readonly losses: readonly SegmentLosses[];
}

export type Recovery =
  | { readonly saleId: string; readonly state: 'none' }
  | ({
      readonly saleId: string;
      readonly state: 'running';
    } & Omit<RebuildProgress, 'step'> & {
        /** wait: another process rebuilds the sale. names: it sells, and nodes may tell what is lost. */
        readonly step: 'wait' | RebuildProgress['step'] | 'names';
      })
  | { readonly saleId: string; readonly state: 'failed'; readonly problem: string }
  | ({ readonly saleId: string; readonly state: 'done' } & RecoveryReport);

export interface RecoverOperations {
  /** Builds the sale anew from Postgres, if that is not under way already; does not wait for the end. @throws UnknownSale */
  recover(saleId: string): Promise<Recovery>;
  /** How far that is; of the process that was asked. @throws UnknownSale */
  recovery(saleId: string): Promise<Recovery>;
}
