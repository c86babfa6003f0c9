import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { ensureBuilt } from './build.ts';
import { createMigratedDatabase } from './postgres/least-rights.ts';
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
  refuseServersOfOthers();
  await ensureBuilt();
  const given = process.env.TEST_REDIS_URL;
  const starts = await Promise.allSettled([
    given === undefined ? RedisServer.start() : GivenRedis.claim(given),
    PostgresServer.start({ settings: SETTINGS }),
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
  project.provide('redisUrl', redis.value.productUrl);
  project.provide('postgresUrl', postgres.value.url);
  project.provide('migratedDatabase', await createMigratedDatabase(postgres.value.url));
  const scratch = await mkdtemp(join(tmpdir(), 'stockade-tests-'));
  project.provide('scratch', scratch);
  return async () => {
    await stopAll();
    await rm(scratch, { recursive: true, force: true });
  };
}

/** Tests flush, fill and kill servers, so they must never reach one that was not meant for them. */
function refuseServersOfOthers(): void {
  for (const name of ['REDIS_URL', 'DATABASE_URL']) {
    if (process.env[name] === undefined) continue;
    delete process.env[name];
    console.warn(
      `${name} is ignored: tests only use servers that they have started, or an empty Redis in TEST_REDIS_URL.`,
    );
  }
}
