import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { redisUrls } from '../../config/values/redis-urls.ts';
import type { SecretUrl } from '../../config/values/secret.ts';
import { type OpenRedisOptions, openRedis, type RedisKind } from '../../engine/cluster/open-redis.ts';
import type { Backend } from '../../engine/contract.ts';
import { StockadeError } from '../../engine/errors.ts';
import { MemoryBackend } from '../../engine/memory/memory-backend.ts';
import type { Teardown } from '../../lib/teardown.ts';
import { awaitDatabase, type Database, openDatabase } from '../../postgres/database.ts';
import { LocalLocks, PostgresLocks, type SaleLocks } from '../../postgres/sale-locks.ts';
import { assertSessions } from '../../postgres/session-probe.ts';
import { Ownership } from '../../shop/ownership.ts';
import type { Log } from '../process/log.ts';
import { startEmbeddedDatabase } from './embedded-database.ts';

const CONNECT_WAIT_MS = 10_000;

/** The opened stores of a configuration: the backend that holds the stock, and the database. */
export interface Stores {
  readonly backend: Backend;
  readonly db: Database;
  readonly databaseUrl: string;
  readonly locks: SaleLocks;
  readonly backendName: RedisKind | 'in-process';
  readonly databaseName: 'postgres' | 'pglite';
  /** Whether other processes can use the same stores. */
  readonly isShared: boolean;
  /** Must be claimed, or at least checked, before the stores are used. */
  readonly ownership: Ownership;
  /** Resolves with the reason if the embedded database fails. */
  readonly failed: Promise<Error>;
}

/** @throws NoSessions if a proxy shares Postgres' sessions, the stores' errors if they can't be reached */
export async function openStores(config: Config, log: Log, teardown: Teardown): Promise<Stores> {
  const database = await openDatabasePart(config, log, teardown);
  if (database.databaseName === 'postgres') await assertSessions(database.databaseUrl);
  const stock = await openStock(config, log);
  teardown.add(() => stock.backend.close());
  const names = storeNames(config);
  const ownership = new Ownership(database.db, stock.backend, names);
  const isShared = names.isShared || names.redis !== undefined;
  return { ...database, ...stock, ownership, isShared };
}

async function openStock(config: Config, log: Log): Promise<Pick<Stores, 'backend' | 'backendName'>> {
  if (config.redisUrl) {
    const connection = {
      lost: (server: string, err: Error) =>
        log.warn({ server, err }, 'Redis can’t be reached; this process tries again until it can'),
      restored: (server: string) => log.info({ server }, 'Redis is reached again'),
    };
    const { backend, kind } = await openRedis({ ...redisOptions(config), connection });
    return { backend, backendName: kind };
  }
  return { backend: new MemoryBackend({ maxLogOrders: config.logBacklogMax }), backendName: 'in-process' };
}

/** The configuration must name a Redis. */
export function redisOptions(config: Config): OpenRedisOptions {
  return {
    urls: redisUrls(config.redisUrl!.reveal()),
    keyPrefix: config.keyPrefix,
    takeTimeoutMs: config.takeTimeoutMs,
    maxLogOrders: config.logBacklogMax,
  };
}

/** How messages, and the mark that a shop leaves in its Redis, name the stores: without users and passwords. */
function storeNames({ redisUrl, databaseUrl, keyPrefix, dataDir }: Config) {
  const database = databaseUrl ? withoutUser(databaseUrl) : `PGlite in ${resolve(dataDir)} on ${hostname()}`;
  return { redis: redisUrl?.toString(), keyPrefix, database, isShared: databaseUrl !== undefined };
}

function withoutUser(databaseUrl: SecretUrl): string {
  const { protocol, host, pathname } = new URL(databaseUrl.reveal());
  return `${protocol}//${host}${pathname}`;
}

export async function openDatabasePart(config: Config, log: Log, teardown: Teardown) {
  if (config.databaseUrl) {
    const url = config.databaseUrl.reveal();
    const locks = new PostgresLocks(url);
    const { database: name } = storeNames(config);
    const db = await open(url, config.pgPoolMax, teardown, (err) =>
      log.warn(
        { err },
        `${name} can't be used yet; it is asked again for up to ${CONNECT_WAIT_MS / 1_000} s`,
      ),
    ).catch((error) => {
      if (isSilent(error))
        throw new StockadeError('unavailable', `${name} does not answer`, { cause: error });
      throw isNameless(error)
        ? new StockadeError('unavailable', `${name} can't be reached`, { cause: error })
        : error;
    });
    teardown.add(() => locks.close());
    return {
      db,
      databaseUrl: url,
      locks,
      databaseName: 'postgres' as const,
      failed: new Promise<Error>(() => {}),
    };
  }
  const embedded = await startEmbeddedDatabase(config.dataDir);
  teardown.add(() => embedded.stop());
  const db = await open(embedded.url, 1, teardown, () => {});
  const { url, failed } = embedded;
  return { db, databaseUrl: url, locks: new LocalLocks(), databaseName: 'pglite' as const, failed };
}

/** The client's message says no more than that it has waited. */
const isSilent = (error: unknown) => error instanceof Error && /timeout expired$/.test(error.message);

/** An error of TLS, for example. Errors of the system name an address, and those of Postgres a user or a database. */
function isNameless(error: unknown): boolean {
  return error instanceof Error && !('syscall' in error) && !('severity' in error);
}

async function open(
  url: string,
  maxConnections: number,
  teardown: Teardown,
  waits: (error: unknown) => void,
): Promise<Database> {
  const db = openDatabase({ url, maxConnections });
  teardown.add(() => db.destroy());
  await awaitDatabase(db, CONNECT_WAIT_MS, waits);
  return db;
}
