/** The operators' services on opened stores, for commands that run without a node. */
import type { Config } from '../config/config.ts';
import type { Teardown } from '../lib/teardown.ts';
import { openDatabase } from '../postgres/database.ts';
import { buildLargeIndexes } from '../postgres/large-indexes.ts';
import { type MigrateOptions, migrate } from '../postgres/migrate.ts';
import { countAllSales } from '../sales/live-orders.ts';
import type { Adoption } from '../shop/ownership.ts';
import { type Operations, operationsOn } from './operations/operations.ts';
import { engineOnDemand } from './own-engine.ts';
import { secureDataDir } from './process/data-dir.ts';
import type { Log } from './process/log.ts';
import { loggedTeardown } from './process/logged-teardown.ts';
import { startOrRelease } from './process/start.ts';
import { prepareDatabase } from './stores/prepare-database.ts';
import { openDatabasePart, openStores } from './stores/stores.ts';

export interface Services extends Operations {
  close(): Promise<void>;
}

/** @throws the stores' errors if they can't be reached, ForeignStores if they do not belong together */
export function openServices(config: Config, log: Log): Promise<Services> {
  return startOrRelease(log, async (teardown) => {
    const stores = await openStores(config, log, teardown);
    await stores.ownership.check();
    return {
      ...operationsOn(stores, engineOnDemand(stores, config, teardown)),
      close: () => teardown.release(),
    };
  });
}

export interface MigrateProgress {
  /** What is counted. */
  readonly of: string;
  readonly done: number;
  readonly total: number;
}

export interface Migrated {
  /** Names of the migrations that were applied. */
  readonly applied: readonly string[];
  /** Names of the indexes that were built beside them. */
  readonly indexes: readonly string[];
  /** Sales whose live orders were counted. */
  readonly countedSales: number;
}

/**
 * Migrates the tables to this version. It needs no Redis.
 * @param progress called while an index of a large table is built, and while live orders are counted
 * @throws as `migrate`
 */
export function migrateDatabase(
  config: Config,
  log: Log,
  options: MigrateOptions,
  progress: (progress: MigrateProgress) => void,
): Promise<Migrated> {
  return withTeardown(config, log, async (teardown) => {
    const { db, databaseUrl, databaseName } = await openDatabasePart(config, log, teardown);
    const applied = await migrate(db, options);
    // PGlite has one session, and no table of the size at which a query could exceed its bound.
    const unbound =
      databaseName === 'pglite'
        ? db
        : openDatabase({ url: databaseUrl, maxConnections: 2, queryTimeoutMs: 0 });
    if (unbound !== db) teardown.add(() => unbound.destroy());
    const indexes = await buildLargeIndexes(unbound, ({ index, done, total }) =>
      progress({ of: `blocks for ${index}`, done, total }),
    );
    const countedSales = await countAllSales(unbound, (done, total) =>
      progress({ of: 'sales counted', done, total }),
    );
    return { applied, indexes, countedSales };
  });
}

/** Marks the stores of this configuration as belonging together from now on (shop/ownership.ts). */
export function adoptStores(config: Config, log: Log): Promise<Adoption> {
  return withTeardown(config, log, async (teardown) => {
    const { db, ownership } = await openStores(config, log, teardown);
    await prepareDatabase(db, log);
    return ownership.adopt();
  });
}

async function withTeardown<T>(
  config: Config,
  log: Log,
  work: (teardown: Teardown) => Promise<T>,
): Promise<T> {
  const teardown = loggedTeardown(log);
  try {
    // Without DATABASE_URL, PGlite writes to DATA_DIR.
    if (!config.databaseUrl) secureDataDir(config, log);
    return await work(teardown);
  } finally {
    await teardown.release();
  }
}
