/** Stores with what works on them, for commands that need no buyers' port. */
import type { Config } from '../config/config.ts';
import type { EventOperations } from '../sync/events/event-operations.ts';
import { type MigrateOptions, migrate } from '../sync/migrate.ts';
import type { SaleOperations } from '../sync/operations.ts';
import type { OrderOperations } from '../sync/orders/order-operations.ts';
import { boundedEvents } from './bounded-events.ts';
import { boundedOperations } from './bounded-operations.ts';
import { boundedOrders } from './bounded-orders.ts';
import { openDataDir } from './data-dir.ts';
import { engineOnDemand } from './engine-on-demand.ts';
import type { Log } from './log.ts';
import { Releasers } from './releasers.ts';
import { openStores } from './stores.ts';

export interface Services {
  readonly operations: SaleOperations;
  readonly orders: OrderOperations;
  readonly events: EventOperations;
  migrate(options?: MigrateOptions): Promise<string[]>;
  close(): Promise<void>;
}

/** @throws the stores' errors if they can't be reached */
export async function openServices(config: Config, log: Log): Promise<Services> {
  const releasers = new Releasers((error) => log.error({ err: error }, 'an orderly end failed'));
  try {
    if (!config.databaseUrl) openDataDir(config, log);
    const stores = await openStores(config, releasers);
    return {
      operations: boundedOperations(stores),
      orders: boundedOrders(stores, engineOnDemand(stores, config, releasers)),
      events: boundedEvents(stores),
      migrate: (options) => migrate(stores.db, options),
      close: () => releasers.release(),
    };
  } catch (error) {
    await releasers.release();
    throw error;
  }
}
