import { Redis } from 'ioredis';
import { isLoopback } from '../../config/values/hosts.ts';
import { redisUrls } from '../../config/values/redis-urls.ts';
import { type SecretUrl, withoutSecrets } from '../../config/values/secret.ts';
import { redisAddress } from '../../redis/redis-address.ts';
import { describe, tlsAdviceFor } from '../terminal/explain.ts';
import { type Check, checksOf, readClock, type StoreFindings } from './check.ts';
import { checkCommands } from './redis-commands.ts';
import { checkPrimaries } from './redis-primaries.ts';
import { checkReplicas } from './redis-replicas.ts';

const { ok, warn, fail } = checksOf('redis');
const CONNECT_TIMEOUT_MS = 2_000;
const COMMAND_TIMEOUT_MS = 3_000;
/** Share of maxmemory above which there is a warning. */
const WARN_ABOVE_SHARE = 0.8;

/** Fields of Redis' INFO and CLUSTER INFO, and `appendfsync` if CONFIG may be read. */
export type RedisFacts = Readonly<Record<string, string | undefined>>;

export async function checkRedis(url: SecretUrl | undefined, keyPrefix: string): Promise<StoreFindings> {
  if (!url) {
    const found = 'REDIS_URL is not set: the in-process backend will be used, in one worker of one node';
    return { checks: [ok('Redis', found)] };
  }
  const urls = redisUrls(url.reveal());
  const found = await Promise.all(
    urls.map((server) => checkServer(server, { servers: urls.length }, keyPrefix)),
  );
  const clock = found.find((findings) => findings.clock !== undefined)?.clock;
  if (urls.length === 1) return found[0]!;
  const checks = found.flatMap((findings, i) =>
    findings.checks.map((check) => ({ ...check, name: `${new URL(urls[i]!).host} ${check.name}` })),
  );
  return { checks, ...(clock && { clock }) };
}

/** What the checks of one server must know about the whole configuration. */
export interface RedisPlan {
  /** Servers that REDIS_URL names. */
  readonly servers: number;
}

async function checkServer(url: string, plan: RedisPlan, keyPrefix: string): Promise<StoreFindings> {
  const { url: address, tls } = redisAddress(url);
  const client = new Redis(address, {
    ...(tls && { tls }),
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // A failed connect rejects with "Connection is closed"; the reason comes as an event.
  let reason: unknown;
  client.on('error', (error) => {
    reason ??= error;
  });
  const shown = withoutSecrets(url);
  try {
    await client.connect();
    const facts = await factsOf(client);
    const clock = await readClock('Redis', async () => {
      const [seconds, microseconds] = await client.time();
      return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    });
    // A replica refuses writes.
    const isCluster = facts.cluster_enabled === '1';
    const commands = facts.role === 'master' ? [await checkCommands(client, keyPrefix, isCluster)] : [];
    const primaries = isCluster ? [await checkPrimaries(client, url)] : [];
    const checks = [
      ok('reachable', shown),
      encryption(url),
      ...judgeRedis(facts, plan),
      ...primaries,
      ...commands,
    ];
    return { checks, clock };
  } catch (error) {
    const advice =
      'Start Redis, or correct REDIS_URL (host, port, user, password, database, redis:// or rediss://).';
    const cause = reason ?? error;
    return { checks: [fail('reachable', `${shown}: ${describe(cause)}`, tlsAdviceFor(cause) ?? advice)] };
  } finally {
    client.disconnect();
  }
}

async function factsOf(client: Redis): Promise<RedisFacts> {
  const info = fieldsOf(await client.info());
  const cluster = info.cluster_enabled === '1' ? fieldsOf(String(await client.cluster('INFO'))) : {};
  // Hosted Redis often does not allow CONFIG.
  const answer = await client.config('GET', 'appendfsync').catch(() => []);
  return { ...info, ...cluster, appendfsync: (answer as string[])[1] };
}

function fieldsOf(info: string): RedisFacts {
  return Object.fromEntries(
    info
      .split('\r\n')
      .filter((line) => line.includes(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}

export function judgeRedis(facts: RedisFacts, plan: RedisPlan): Check[] {
  return [
    version(facts),
    topology(facts, plan),
    role(facts),
    checkReplicas(facts),
    appendOnly(facts),
    eviction(facts),
    memory(facts),
  ];
}

/** Anyone who can read the traffic to Redis gets the password, and with it all rights of the node. */
export function encryption(url: string): Check {
  const { protocol, hostname } = new URL(url);
  if (protocol === 'rediss:') return ok('encryption', 'TLS, and the certificate is checked');
  return isLoopback(hostname)
    ? ok('encryption', 'none, and the connection does not leave this machine')
    : warn(
        'encryption',
        'none',
        'Begin REDIS_URL with rediss://, or use a network that only your machines can reach.',
      );
}

function version({ redis_version: found = 'unknown' }: RedisFacts): Check {
  const [major = 0, minor = 0] = found.split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 2)
    ? ok('version', found)
    : fail('version', found, 'Install Redis 6.2 or newer.');
}

function topology(facts: RedisFacts, { servers }: RedisPlan): Check {
  if (facts.cluster_enabled !== '1') {
    return servers === 1
      ? ok('topology', 'a single Redis')
      : fail(
          'topology',
          `a single Redis, one of ${servers}`,
          'Name one Redis, or servers of one Redis Cluster.',
        );
  }
  const { cluster_state: state = 'unknown', cluster_slots_ok: slots = 'unknown' } = facts;
  return state === 'ok'
    ? ok('topology', `a Redis Cluster of ${facts.cluster_size} primaries`)
    : fail(
        'topology',
        `a Redis Cluster in state ${state}, with ${slots} of 16384 slots served`,
        'Make sure that each slot has a primary that is up: redis-cli --cluster check.',
      );
}

/** In a cluster REDIS_URL may name a replica: the client learns the primaries from it. */
function role({ role: found = 'unknown', cluster_enabled: cluster }: RedisFacts): Check {
  if (found === 'slave' && cluster !== '1')
    return fail('role', 'a replica, which takes no writes', 'Point REDIS_URL at the primary.');
  return ok('role', found === 'master' ? 'primary' : found === 'slave' ? 'replica' : found);
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
  return ok('appendonly', `on, appendfsync ${appendfsync ?? 'is not known'}`);
}

/** Fails even if Redis has no memory limit now: one may be set at any time, so a node refuses to start with such a Redis. */
function eviction({ maxmemory_policy: policy }: RedisFacts): Check {
  const advice = 'Set maxmemory-policy noeviction: stock is lost with each evicted key.';
  if (policy === undefined) return warn('maxmemory-policy', 'is not known', advice);
  return policy === 'noeviction' ? ok('maxmemory-policy', policy) : fail('maxmemory-policy', policy, advice);
}

function memory({ maxmemory, used_memory: used }: RedisFacts): Check {
  const [limit, inUse] = [Number(maxmemory), Number(used)];
  if (!(limit > 0)) {
    const found = `no limit, ${megabytes(inUse)} in use`;
    return warn(
      'memory',
      found,
      'Set maxmemory below the memory of the machine: at its limit Redis refuses writes, without one it is killed.',
    );
  }
  const found = `${megabytes(inUse)} of ${megabytes(limit)} in use`;
  return inUse > limit * WARN_ABOVE_SHARE
    ? warn('memory', found, 'Raise maxmemory, or remove what is not needed.')
    : ok('memory', found);
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
