/**
 * The Redis connections of a process, each with the options that its work needs.
 *
 * The take connection must never retry by itself: with ioredis' defaults a command whose reply was lost is sent again,
 * and a decrement then happens twice. So it fails a command when its connection breaks, queues nothing while it is
 * down, and leaves the asking again to the lane, which does it with the same order ids and a newer ticket.
 */
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { NotExecuted } from '../engine/errors.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import { redisAddress } from './redis-address.ts';

const CONNECT_TIMEOUT_MS = 2_000;
/** A cluster that is not ready by then is as good as away. Longer than a failover takes. */
const CLUSTER_READY_MS = 15_000;
/** A connection that owes a reply for so long is taken for dead. A take has its own, shorter deadline. */
const SILENCE_TIMEOUT_MS = 5_000;
const RECONNECT_STEP_MS = 50;
const RECONNECT_MAX_MS = 1_000;
/** How long a client may go by an old map of the cluster if nobody tells it of a change. */
const SLOTS_REFRESH_MS = 1_000;

/** A connection to one server, or to all of a cluster: commands are the same. */
export type RedisClient = Redis | Cluster;

/** What a server answers that was the primary before a failover: the address leads to the new one by now. */
export const DEMOTED = /^(READONLY|MASTERDOWN)\b/;
const RECONNECT_AND_RESEND = 2;

const common = {
  lazyConnect: true,
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENCE_TIMEOUT_MS,
  retryStrategy: (attempt: number) => Math.min(attempt * RECONNECT_STEP_MS, RECONNECT_MAX_MS),
};

function clientOf(text: string, options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const { url, tls } = redisAddress(text);
  return new Redis(url, { ...common, ...options, ...(tls && { tls }) });
}

/** For takes: a command is sent at most once. A connection that is given up is not kept for a polite goodbye. */
export function takeClient(url: string): Redis {
  return clientOf(url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    disconnectTimeout: 0,
  });
}

/** For work that is idempotent and may wait: logs, cursors, sale records. Commands are tried again a few times. */
export function workClient(url: string): Redis {
  const reconnectOnError = (error: Error) => (DEMOTED.test(error.message) ? RECONNECT_AND_RESEND : false);
  return clientOf(url, { maxRetriesPerRequest: 3, reconnectOnError });
}

/**
 * For such work on a cluster. Each command goes where its key is, and again if its server goes; never use it for takes.
 * @param urls of servers of the cluster, one at least; user, password, protocol and parameters of the first are those of all
 */
export function clusterClient(urls: readonly string[]): Cluster {
  const nodes = urls.map((url) => new URL(url));
  const { username, password } = nodes[0]!;
  const { tls } = redisAddress(urls[0]!);
  // Each server has a name of its own; its certificate is compared with the address that it is reached at.
  if (tls) delete tls.servername;
  return new Cluster(
    nodes.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || 6379),
    })),
    {
      lazyConnect: true,
      slotsRefreshInterval: SLOTS_REFRESH_MS,
      clusterRetryStrategy: common.retryStrategy,
      redisOptions: {
        connectTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: SILENCE_TIMEOUT_MS,
        ...(username && { username: decodeURIComponent(username) }),
        ...(password && { password: decodeURIComponent(password) }),
        ...(tls && { tls }),
      },
    },
  );
}

/** For one subscription to one of several servers: ends when its connection does. */
export function singleUseClient(url: string): Redis {
  return clientOf(url, { retryStrategy: () => null });
}

/** For subscriptions: waits for as long as it takes. */
export function subscriberClient(url: string): Redis {
  return clientOf(url, { maxRetriesPerRequest: null });
}

/**
 * Connects, and lets later connection errors be seen through `ready` and failing commands, not as a crash.
 * @throws NotExecuted with what went wrong first
 */
export async function connect<Client extends RedisClient>(client: Client): Promise<Client> {
  let first: Error | undefined;
  client.on('error', (error: Error) => {
    first ??= error;
  });
  try {
    await (client instanceof Redis ? client.connect() : connectCluster(client));
    return client;
  } catch (error) {
    const where =
      client instanceof Redis ? `${client.options.host}:${client.options.port}` : 'of the cluster';
    const cause = first ?? error;
    const why =
      cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : String(cause);
    throw new NotExecuted(`Redis at ${where} can't be reached: ${why}`, cause);
  }
}

/**
 * The promise of ioredis' `connect` never settles if a server was found and then failed the check whether the cluster is
 * ready: its client connects again, by itself, and nobody tells who waited for the first time.
 */
async function connectCluster(cluster: Cluster): Promise<void> {
  const ready = new Promise<void>((resolve, reject) => {
    cluster.once('ready', resolve);
    cluster.connect().catch(reject);
  });
  await withTimeout(CLUSTER_READY_MS, ready);
}

/**
 * Lets all commands of one turn leave in one write. A system call per command costs more than the command: with eight
 * segments a turn has eight takes and a hint.
 *
 * @param end calls back when what belongs together has been sent
 * @returns to be called before a command is sent
 */
export function corking(client: Redis, end: (uncork: () => void) => void = process.nextTick): () => void {
  let corked = false;
  return () => {
    const { stream } = client;
    if (corked || !stream) return;
    corked = true;
    stream.cork();
    end(() => {
      corked = false;
      stream.uncork();
    });
  };
}
