import { Redis } from 'ioredis';
import type { SecretUrl } from '../../config/secret.ts';
import { describe } from '../explain.ts';
import { type Check, checksOf, readClock, type StoreFindings } from './check.ts';

const { ok, warn, fail } = checksOf('redis');
const CONNECT_TIMEOUT_MS = 2_000;
const COMMAND_TIMEOUT_MS = 3_000;
const FULL_FROM = 0.8;

/** Fields of Redis' INFO, and `appendfsync` where Redis tells it. */
export type RedisFacts = Readonly<Record<string, string | undefined>>;

export async function checkRedis(url: SecretUrl | undefined): Promise<StoreFindings> {
  if (!url) {
    const found = 'REDIS_URL is not set: the in-process backend will be used, in one worker of one node';
    return { checks: [ok('Redis', found)] };
  }
  const client = new Redis(url.reveal(), {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // A failed connect rejects with "Connection is closed"; why it was closed comes as an event.
  let reason: unknown;
  client.on('error', (error) => {
    reason ??= error;
  });
  try {
    await client.connect();
    const facts = await factsOf(client);
    const clock = await readClock('Redis', async () => {
      const [seconds, microseconds] = await client.time();
      return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    });
    return { checks: [ok('reachable', `${url}`), ...judgeRedis(facts)], clock };
  } catch (error) {
    const advice =
      'Start Redis, or correct REDIS_URL (host, port, user, password, database, redis:// or rediss://).';
    return { checks: [fail('reachable', `${url}: ${describe(reason ?? error)}`, advice)] };
  } finally {
    client.disconnect();
  }
}

async function factsOf(client: Redis): Promise<RedisFacts> {
  const info = await client.info();
  const facts = Object.fromEntries(
    info
      .split('\r\n')
      .filter((line) => line.includes(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
  // Hosted Redis often keeps CONFIG to itself.
  const answer = await client.config('GET', 'appendfsync').catch(() => []);
  return { ...facts, appendfsync: (answer as string[])[1] };
}

export function judgeRedis(facts: RedisFacts): Check[] {
  return [version(facts), topology(facts), role(facts), appendOnly(facts), eviction(facts), memory(facts)];
}

function version({ redis_version: found = 'unknown' }: RedisFacts): Check {
  const [major = 0, minor = 0] = found.split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 2)
    ? ok('version', found)
    : fail('version', found, 'Install Redis 6.2 or newer.');
}

function topology({ cluster_enabled: cluster }: RedisFacts): Check {
  return cluster === '1'
    ? fail(
        'topology',
        'a Redis Cluster',
        'Point REDIS_URL at a single Redis: stock moves between segments in one script.',
      )
    : ok('topology', 'a single Redis');
}

function role({ role: found = 'unknown' }: RedisFacts): Check {
  return found === 'slave'
    ? fail('role', 'a replica, which takes no writes', 'Point REDIS_URL at the primary.')
    : ok('role', found === 'master' ? 'primary' : found);
}

function appendOnly({ aof_enabled: enabled, appendfsync }: RedisFacts): Check {
  if (enabled !== '1') {
    return warn(
      'appendonly',
      'off: an order answered 202 is lost if Redis restarts before it is in Postgres (201 is safe)',
      'Set appendonly yes, and appendfsync everysec.',
    );
  }
  if (appendfsync === 'no') {
    return warn('appendonly', 'on, but appendfsync is no', 'Set appendfsync everysec, or always.');
  }
  return ok('appendonly', `on, appendfsync ${appendfsync ?? 'is not told'}`);
}

function eviction({ maxmemory_policy: policy = 'unknown', maxmemory }: RedisFacts): Check {
  if (policy === 'noeviction') return ok('maxmemory-policy', policy);
  const advice = 'Set maxmemory-policy noeviction: a key that is evicted is stock that is gone.';
  return Number(maxmemory) > 0
    ? fail('maxmemory-policy', policy, advice)
    : warn('maxmemory-policy', `${policy}, without effect while there is no memory limit`, advice);
}

function memory({ maxmemory, used_memory: used }: RedisFacts): Check {
  const [limit, inUse] = [Number(maxmemory), Number(used)];
  if (!(limit > 0)) {
    const found = `no limit, ${megabytes(inUse)} in use`;
    return warn(
      'memory',
      found,
      'Set maxmemory below what the machine has: at its limit Redis refuses, without one it is killed.',
    );
  }
  const found = `${megabytes(inUse)} of ${megabytes(limit)} in use`;
  return inUse > limit * FULL_FROM
    ? warn('memory', found, 'Raise maxmemory, or remove what is not needed.')
    : ok('memory', found);
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
