import pg from 'pg';
import { settings } from '../../src/config/settings.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { PostgresServer } from '../../test/support/servers/postgres-server.ts';
import { RedisServer } from '../../test/support/servers/redis-server.ts';

/**
 * Redis rewrites the file when it has doubled: in some measurements and not in others, in a child process that is not
 * counted.
 */
export const NO_REWRITE_OF_AOF = ['--auto-aof-rewrite-percentage', '0'];

export interface StoreServers {
  readonly redis: RedisServer;
  readonly postgres: PostgresServer;
}

/**
 * A Redis and a Postgres of the bench's own, set as a shop would: an AOF synced every second, and fsync on.
 * @param redisFlags more arguments of redis-server
 */
export async function startStoreServers(
  teardown: Teardown,
  ...redisFlags: readonly string[]
): Promise<StoreServers> {
  const extraArgs = ['--appendfsync', 'everysec', ...redisFlags];
  const redis = await RedisServer.start({ appendonly: true, extraArgs });
  teardown.add(() => redis[Symbol.asyncDispose]());
  const postgres = await PostgresServer.start();
  teardown.add(() => postgres[Symbol.asyncDispose]());
  return { redis, postgres };
}

/** Makes a checkpoint now, which would otherwise fall into some measurements and not into others. */
export async function checkpoint(postgres: PostgresServer): Promise<void> {
  const client = new pg.Client(postgres.url);
  await client.connect();
  try {
    await client.query('CHECKPOINT');
  } finally {
    await client.end();
  }
}

/** Removes the shell's settings for Stockade, so that they don't affect what is measured. */
export function forgetSettings(): void {
  for (const { env } of Object.values(settings)) delete process.env[env];
}
