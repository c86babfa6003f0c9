/**
 * Finds Redis servers that evict keys when their memory is full. An evicted key loses stock, a buyer's record or a
 * log. The policy is read from INFO, which every user may call; CONFIG is often forbidden.
 */
import type { Redis } from 'ioredis';
import { withTimeout } from '../lib/with-timeout.ts';
import { connect, singleUseClient } from './clients.ts';

const DEFAULT_PORT = 6379;
const KEEPS_ALL = 'noeviction';
/** For one server, from the start of the connection to the last answer. */
const ANSWER_MS = 5_000;

export interface ServerPolicy {
  /** `host:port`. */
  readonly server: string;
  /** Its `maxmemory-policy`. */
  readonly policy: string;
}

export interface EvictionFindings {
  /**
   * Primaries with another `maxmemory-policy` than `noeviction`, whether or not they have a memory limit now: one may
   * be set at any time. A server that does not report its policy is left out.
   */
  readonly evicting: readonly ServerPolicy[];
  /**
   * Primaries of a cluster, `host:port`, that did not answer. They stop their own segments, but not the start of a
   * node.
   */
  readonly silent: readonly string[];
}

/**
 * @param urls as in REDIS_URL
 * @throws NotExecuted, or another connection error, if no server answers
 */
export async function lookForEviction(urls: readonly string[]): Promise<EvictionFindings> {
  const first = await askFirst(urls);
  // The url of a server that did not answer stands for its policy.
  const answers =
    'single' in first
      ? [first.single]
      : await Promise.all(first.primaries.map((url) => policyOf(url).catch(() => url)));
  const policies = answers.filter((answer) => typeof answer !== 'string');
  return {
    evicting: policies.filter(({ policy }) => policy !== KEEPS_ALL),
    silent: answers.filter((answer) => typeof answer === 'string').map(serverOf),
  };
}

type FirstAnswer =
  /** Of a single Redis. */
  | { readonly single: ServerPolicy }
  /** Of a cluster: where its primaries are. */
  | { readonly primaries: readonly string[] };

/** Asks the servers in turn, until one answers. */
async function askFirst(urls: readonly string[]): Promise<FirstAnswer> {
  let fault: unknown;
  for (const url of urls) {
    try {
      return await ask(url, async (redis) => {
        const isCluster = (await redis.info('cluster')).includes('cluster_enabled:1');
        return isCluster
          ? { primaries: primariesOf(await redis.cluster('SLOTS'), url) }
          : { single: await readPolicy(redis, url) };
      });
    } catch (error) {
      fault = error;
    }
  }
  throw fault;
}

/**
 * Where a cluster says that its primaries are.
 * @param slots the reply to CLUSTER SLOTS: from, to, the primary with address and port, its replicas
 */
export function primariesOf(slots: unknown, asked: string): string[] {
  const primaries = (slots as [unknown, unknown, [string | null, number]][]).map(([, , [host, port]]) => {
    const url = new URL(asked);
    // A server that does not know its own address leaves it out: then it is the server that was asked.
    if (host) url.hostname = host.includes(':') ? `[${host}]` : host;
    url.port = String(port);
    return url.href;
  });
  return [...new Set(primaries)];
}

function policyOf(url: string): Promise<ServerPolicy> {
  return ask(url, (redis) => readPolicy(redis, url));
}

function serverOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || DEFAULT_PORT}`;
}

async function readPolicy(redis: Redis, url: string): Promise<ServerPolicy> {
  const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info('memory'))?.[1] ?? KEEPS_ALL;
  return { server: serverOf(url), policy };
}

async function ask<T>(url: string, question: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = singleUseClient(url);
  try {
    return await withTimeout(ANSWER_MS, connect(redis).then(question));
  } finally {
    redis.disconnect();
  }
}
