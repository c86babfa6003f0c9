/** Stores with what works on them, for commands that need no buyers' port. */
import type { Config } from '../config/config.ts';
import { Releasers } from '../lib/teardown.ts';
import type { EventOperations } from '../operations/event-operations.ts';
import type { OrderOperations } from '../operations/order-operations.ts';
import type { SaleOperations } from '../operations/sale-operations.ts';
import { type MigrateOptions, migrate } from '../postgres/migrate.ts';
import type { Adoption } from '../shop/ownership.ts';
import { engineOnDemand } from './engine-on-demand.ts';
import { boundedEvents } from './operations/bounded-events.ts';
import { boundedOperations } from './operations/bounded-operations.ts';
import { boundedOrders } from './operations/bounded-orders.ts';
import { openDataDir } from './process/data-dir.ts';
import type { Log } from './process/log.ts';
import { prepareDatabase } from './stores/prepare-database.ts';
import { openDatabasePart, openStores } from './stores/stores.ts';

export interface Services {
  readonly operations: SaleOperations;
  readonly orders: OrderOperations;
  readonly events: EventOperations;
  close(): Promise<void>;
}

/** @throws the stores' errors if they can't be reached, ForeignStores if they do not belong together */
export async function openServices(config: Config, log: Log): Promise<Services> {
  const releasers = new Releasers((error) => log.error({ err: error }, 'an orderly end failed'));
  try {
    const stores = await openStores(config, releasers);
    await stores.ownership.check();
    return {
      operations: boundedOperations(stores),
      orders: boundedOrders(stores, engineOnDemand(stores, config, releasers)),
      events: boundedEvents(stores),
      close: () => releasers.release(),
    };
  } catch (error) {
    await releasers.release();
    throw error;
  }
}

/** Brings the tables up to this version; needs no Redis. @throws as `migrate` */
export function migrateDatabase(config: Config, log: Log, options: MigrateOptions): Promise<string[]> {
  return withReleasers(config, log, async (releasers) => {
    const { db } = await openDatabasePart(config, releasers);
    return migrate(db, options);
  });
}

/** Makes the stores of this configuration belong together from now on (shop/ownership.ts). */
export function adoptStores(config: Config, log: Log): Promise<Adoption> {
  return withReleasers(config, log, async (releasers) => {
    const { db, ownership } = await openStores(config, releasers);
    await prepareDatabase(db, log);
    return ownership.adopt();
  });
}

async function withReleasers<T>(
  config: Config,
  log: Log,
  work: (releasers: Releasers) => Promise<T>,
): Promise<T> {
  const releasers = new Releasers((error) => log.error({ err: error }, 'an orderly end failed'));
  try {
    // For PGlite; commands on the stores name a Postgres.
    if (!config.databaseUrl) openDataDir(config, log);
    return await work(releasers);
  } finally {
    await releasers.release();
  }
}
