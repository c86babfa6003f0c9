import type { TakenOrder } from './uncommitted-orders.ts';

/** What an engine tells the worker that it runs in. None of these may throw. */
export interface EngineEvents {
  /** A batch of so many orders leaves for the store. */
  readonly onBatch?: (orders: number) => void;
  /**
   * The sale was built anew, or the store has lost writes, and it is not known here whether these orders are committed or lost:
   * Postgres has to be asked.
   */
  readonly onUncommitted?: (saleId: string, orders: readonly TakenOrder[]) => void;
  readonly onFault?: (error: unknown, saleId: string, segment?: number) => void;
  /** As `BackendEvents.foreign`. */
  readonly onForeign?: (error: unknown) => void;
}
