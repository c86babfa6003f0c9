/** How far the replicas of a Redis are behind it. A failover to a replica loses the orders answered `202` that it does not have. */
import { Redis } from 'ioredis';
import { redisAddress } from '../../redis/redis-address.ts';
import { number } from '../terminal/output.ts';
import { type Check, checksOf } from './check.ts';

const { ok, fail } = checksOf('redis');
const LIMIT_MS = 2_000;
/** A replica reports each second. One that was silent for longer is cut off, frozen or far behind. */
const MAX_REPLICA_SILENT_S = 4;
/** Bytes that a replica may have to catch up: some 100,000 orders. */
const MAX_REPLICA_BEHIND_BYTES = 16 * 2 ** 20;

interface ReplicaReading {
  /** `host:port` */
  readonly replica: string;
  readonly state: string;
  readonly behindBytes: number;
  /** Since it last reported. */
  readonly silentSeconds: number;
}

export interface RedisReading {
  readonly cpuSeconds: number;
  readonly replicas: readonly ReplicaReading[];
}

type Facts = Readonly<Record<string, string | undefined>>;

/** @param facts the fields of INFO */
function replicasOf(facts: Facts): ReplicaReading[] {
  const written = Number(facts.master_repl_offset ?? 0);
  return Object.entries(facts).flatMap(([name, value = '']) => {
    if (!/^slave\d+$/.test(name)) return [];
    const fields = Object.fromEntries(value.split(',').map((pair) => pair.split('=')));
    const offset = Number(fields.offset);
    return {
      replica: `${fields.ip}:${fields.port}`,
      state: String(fields.state),
      behindBytes: Math.max(0, written - offset),
      silentSeconds: Number(fields.lag),
    };
  });
}

export function isLagging({ state, behindBytes, silentSeconds }: ReplicaReading): boolean {
  return state !== 'online' || behindBytes > MAX_REPLICA_BEHIND_BYTES || silentSeconds > MAX_REPLICA_SILENT_S;
}

export function replicaText({ replica, state, behindBytes, silentSeconds }: ReplicaReading): string {
  return `${replica} is ${state}, ${number(behindBytes)} bytes behind, last heard of ${number(silentSeconds)} s ago`;
}

export const REPLICA_ADVICE =
  'Repair it, or its network: after a failover to it, orders answered 202 that it does not have are lost. With ' +
  'min-replicas-to-write, Redis takes no orders without a replica that follows.';

export function checkReplicas(facts: Facts): Check {
  const replicas = replicasOf(facts);
  const lagging = replicas.filter(isLagging);
  if (lagging.length > 0) return fail('replicas', lagging.map(replicaText).join('; '), REPLICA_ADVICE);
  return ok('replicas', replicas.length === 0 ? 'none' : replicas.map(replicaText).join('; '));
}

/** A connection that reads what changes from second to second. */
export function openRedisLook(url: string): { read(): Promise<RedisReading>; close(): void } {
  const { url: address, tls } = redisAddress(url);
  const client = new Redis(address, {
    ...(tls && { tls }),
    connectTimeout: LIMIT_MS,
    commandTimeout: LIMIT_MS,
    maxRetriesPerRequest: 0,
  });
  client.on('error', () => {});
  return {
    async read() {
      const facts = Object.fromEntries(
        (await client.info()).split('\r\n').map((line) => {
          const colon = line.indexOf(':');
          return [line.slice(0, colon), line.slice(colon + 1)];
        }),
      );
      const cpuSeconds = Number(facts.used_cpu_sys ?? 0) + Number(facts.used_cpu_user ?? 0);
      return { cpuSeconds, replicas: replicasOf(facts) };
    },
    close: () => client.disconnect(),
  };
}
