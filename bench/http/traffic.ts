/** Bytes that cross the connections of Redis, and bytes that Postgres writes to its WAL. */
import { Redis } from 'ioredis';
import pg from 'pg';
import type { StoreServers } from '../support/stores.ts';

/** Since the servers started, or for each request. */
export interface Traffic {
  readonly toRedis: number;
  readonly fromRedis: number;
  readonly wal: number;
}

export async function readTraffic({ redis, postgres }: StoreServers): Promise<Traffic> {
  const client = new Redis(redis.url);
  try {
    const stats = await client.info('stats');
    const total = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(stats)![1]);
    const [toRedis, fromRedis] = [total('total_net_input_bytes'), total('total_net_output_bytes')];
    return { toRedis, fromRedis, wal: await walBytes(postgres.url) };
  } finally {
    client.disconnect();
  }
}

export function perRequest(before: Traffic, after: Traffic, requests: number): Traffic {
  return {
    toRedis: (after.toRedis - before.toRedis) / requests,
    fromRedis: (after.fromRedis - before.fromRedis) / requests,
    wal: (after.wal - before.wal) / requests,
  };
}

async function walBytes(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows } = await client.query<{ bytes: string }>(
      "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS bytes",
    );
    return Number(rows[0]!.bytes);
  } finally {
    await client.end();
  }
}
