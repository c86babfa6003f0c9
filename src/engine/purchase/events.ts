import type { TakenOrder } from './uncommitted-orders.ts';

/** Callbacks by which an engine reports to the worker that it runs in. None of them may throw. */
export interface EngineEvents {
  /** A batch with this number of orders is sent to the store. */
  readonly onBatch?: (orders: number) => void;
  /** A batch found too few units in its home segment, and is sent again with a refill. */
  readonly onRefill?: () => void;
  /**
   * The sale was rebuilt, or the store has lost writes, and this worker does not know whether these orders are committed or lost.
   * They have to be looked up in Postgres.
   */
  readonly onUncommitted?: (saleId: string, orders: readonly TakenOrder[]) => void;
  readonly onFault?: (error: unknown, saleId: string, segment?: number) => void;
  /** As `BackendEvents.foreign`. */
  readonly onForeign?: (error: unknown) => void;
}
