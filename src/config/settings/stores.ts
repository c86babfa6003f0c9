/** Settings of the stores: where stock and orders are kept. */
import { postgresUrl } from '../values/postgres-url.ts';
import { redisUrl } from '../values/redis-urls.ts';
import { matching, text, whole } from '../values/schemas.ts';
import type { SecretUrl } from '../values/secret.ts';
import type { SettingTable } from './setting.ts';

export interface StoresSettings {
  readonly redisUrl: SecretUrl | undefined;
  readonly databaseUrl: SecretUrl | undefined;
  readonly keyPrefix: string;
  readonly dataDir: string;
  readonly pgPoolMax: number;
}

export const storesSettings: SettingTable<StoresSettings> = {
  redisUrl: {
    env: 'REDIS_URL',
    flag: '--redis-url <url>',
    schema: redisUrl,
    fallback: undefined,
    fallbackText: 'stock in the memory of the node',
    description:
      'Redis that holds the stock and the order logs, or some servers of a Redis Cluster (`redis://a:6379,b:6379`). `rediss://` for TLS. Needed for more than one worker or node.',
  },
  databaseUrl: {
    env: 'DATABASE_URL',
    flag: '--database-url <url>',
    schema: postgresUrl,
    fallback: undefined,
    fallbackText: 'PGlite in `DATA_DIR`',
    description: 'Postgres that holds sales and orders. `?sslmode=verify-full` for TLS.',
  },
  keyPrefix: {
    env: 'KEY_PREFIX',
    flag: '--key-prefix <text>',
    schema: matching(/^[\x21-\x7a|~]{1,64}$/, 'must be 1 to 64 visible ASCII characters without braces'),
    fallback: 'stockade:',
    description: 'Prefix of every Redis key and channel. The same in all nodes of one shop.',
  },
  dataDir: {
    env: 'DATA_DIR',
    flag: '--data-dir <path>',
    schema: text,
    fallback: '.stockade',
    description:
      "Folder of PGlite's data and of the operators' token. Use it for nothing else: it is closed to other users of the machine.",
  },
  pgPoolMax: {
    env: 'PG_POOL_MAX',
    flag: '--pg-pool-max <n>',
    schema: whole(1, 100),
    fallback: 5,
    description:
      'Most Postgres connections of the main thread. Each worker has 2 more, and the locks have 1. With PGlite there is only 1.',
  },
};
