import type { Backend } from '../../engine/contract.ts';
import type { Database } from '../../postgres/database.ts';
import type { SaleLocks } from '../../postgres/sale-locks.ts';
import type { SyncEvents } from './sync-events.ts';

/** The stores of a sync. */
export interface SyncStores {
  readonly db: Database;
  readonly backend: Backend;
  readonly locks: SaleLocks;
  readonly events: SyncEvents;
  /**
   * Checks before a rebuild that backend and database belong together; absent if they certainly do. @throws
   * ForeignStores
   */
  claim?(): Promise<void>;
}
