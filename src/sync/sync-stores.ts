import type { Backend } from '../engine/contract.ts';
import type { Database } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import type { SyncEvents } from './sync-events.ts';

/** What a sync works with. */
export interface SyncStores {
  readonly db: Database;
  readonly backend: Backend;
  readonly locks: SaleLocks;
  readonly events: SyncEvents;
  /** Sees before a rebuild that backend and database belong together. Missing: that is certain. @throws ForeignStores */
  claim?(): Promise<void>;
}
