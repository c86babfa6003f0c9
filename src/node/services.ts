/** Stores with what works on them, for commands that need no buyers' port. */
import { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import { migrate } from '../sync/migrate.ts';
import type { SaleOperations } from '../sync/operations.ts';
import { Sync } from '../sync/sync.ts';
import { boundedOperations } from './bounded-operations.ts';
import type { Log } from './log.ts';
import { Releasers } from './releasers.ts';
import { openStores, type Stores } from './stores.ts';
import { watchSync } from './sync-watch.ts';

export interface Services {
  readonly operations: SaleOperations;
  migrate(): Promise<string[]>;
  startSync(): Promise<RunningSync>;
  close(): Promise<void>;
}

export interface RunningSync {
  /** Resolves with the reason if sync can't go on; a loop that fails and starts again is no reason. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/** @throws the stores' errors if they can't be reached */
export async function openServices(config: Config, log: Log): Promise<Services> {
  const releasers = new Releasers((error) => log.error({ err: error }, 'an orderly end failed'));
  try {
    const stores = await openStores(config, releasers);
    return {
      operations: boundedOperations(stores),
      migrate: () => migrate(stores.db),
      startSync: () => startSync(stores, config, watchSync(log, new Registry())),
      close: () => releasers.release(),
    };
  } catch (error) {
    await releasers.release();
    throw error;
  }
}

export async function startSync(
  { db, backend, locks, failed }: Stores,
  config: Config,
  events: ReturnType<typeof watchSync>,
): Promise<RunningSync & { readonly ready: Promise<void> }> {
  const sync = new Sync({ db, backend, locks, events, batchRows: config.syncBatchRows });
  await sync.start();
  return { failed, ready: sync.ready, stop: () => sync.stop() };
}
