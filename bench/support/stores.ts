import { settings } from '../../src/config/settings.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { PostgresServer } from '../../test/support/servers/postgres-server.ts';
import { RedisServer } from '../../test/support/servers/redis-server.ts';

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

/** Removes the shell's settings for Stockade, so that they don't affect what is measured. */
export function forgetSettings(): void {
  for (const { env } of Object.values(settings)) delete process.env[env];
}
