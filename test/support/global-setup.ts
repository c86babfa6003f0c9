import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProvidedContext } from 'vitest';
import type { TestProject } from 'vitest/node';
import { ensureBuilt } from './nodes/build.ts';
import { createMigratedDatabase } from './postgres/least-rights.ts';
import { GivenPostgres } from './servers/given-postgres.ts';
import { GivenRedis } from './servers/given-redis.ts';
import { PostgresServer } from './servers/postgres-server.ts';
import { RedisServer } from './servers/redis-server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** As the product's user. */
    redisUrl: string;
    /** As the administrator. */
    postgresUrl: string;
    /** The name of a database with all tables, for copying. */
    migratedDatabase: string;
    /** A folder for files that test files share. */
    scratch?: string;
  }
}

const SETTINGS = {
  // Nobody kills this Postgres. Tests that kill one start their own, which syncs as in earnest.
  fsync: 'off',
  full_page_writes: 'off',
  // It visits each of the run's 600 databases once a minute: that took more processor time than all tests' statements.
  autovacuum: 'off',
};

/**
 * One Redis and one Postgres for all test files of the run; each test keeps to its own prefix and database. It also builds dist/,
 * because nodes run from it.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const run = theRun();
  run.projects += 1;
  const { provided, stop } = await run.servers;
  project.provide('redisUrl', provided.redisUrl);
  project.provide('postgresUrl', provided.postgresUrl);
  project.provide('migratedDatabase', provided.migratedDatabase);
  project.provide('scratch', provided.scratch);
  return async () => {
    run.projects -= 1;
    if (run.projects === 0) await stop();
  };
}

interface Servers {
  readonly provided: Required<ProvidedContext>;
  stop(): Promise<void>;
}

interface Run {
  readonly servers: Promise<Servers>;
  /** Those that still use the servers. */
  projects: number;
}

/** Each project of a run has its own copy of this module, so what they share is known to the process. */
const RUN = Symbol.for('stockade-tests.run');

function theRun(): Run {
  const known = globalThis as { [RUN]?: Run };
  if (!known[RUN]?.projects) known[RUN] = { servers: startServers(), projects: 0 };
  return known[RUN]!;
}

async function startServers(): Promise<Servers> {
  refuseServersOfOthers();
  await ensureBuilt();
  const { TEST_REDIS_URL, TEST_POSTGRES_URL } = process.env;
  const starts = await Promise.allSettled([
    TEST_REDIS_URL === undefined ? RedisServer.start() : GivenRedis.claim(TEST_REDIS_URL),
    TEST_POSTGRES_URL === undefined
      ? PostgresServer.start({ settings: SETTINGS })
      : GivenPostgres.claim(TEST_POSTGRES_URL),
  ]);
  const [redis, postgres] = starts;
  const stopAll = async (): Promise<void> => {
    const started = starts.flatMap<AsyncDisposable>((start) =>
      start.status === 'fulfilled' ? [start.value] : [],
    );
    await Promise.all(started.map((server) => server[Symbol.asyncDispose]()));
  };
  if (redis.status === 'rejected' || postgres.status === 'rejected') {
    await stopAll();
    throw redis.status === 'rejected' ? redis.reason : (postgres as PromiseRejectedResult).reason;
  }
  const scratch = await mkdtemp(join(tmpdir(), 'stockade-tests-'));
  return {
    provided: {
      redisUrl: redis.value.productUrl,
      postgresUrl: postgres.value.url,
      migratedDatabase: await createMigratedDatabase(postgres.value.url),
      scratch,
    },
    stop: async () => {
      await stopAll();
      await rm(scratch, { recursive: true, force: true });
    },
  };
}

/** Tests flush, fill and kill servers, so they must never reach one that was not meant for them. */
function refuseServersOfOthers(): void {
  for (const name of ['REDIS_URL', 'DATABASE_URL']) {
    if (process.env[name] === undefined) continue;
    delete process.env[name];
    console.warn(
      `${name} is ignored: tests only use servers that they have started, or those of TEST_REDIS_URL and TEST_POSTGRES_URL.`,
    );
  }
}
