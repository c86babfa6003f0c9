/**
 * The Redis connections of a process, each with the options that its work needs.
 *
 * The connection for takes must never retry by itself: with ioredis' defaults a command whose reply was lost is sent
 * again, and the stock would be decremented twice. So it fails a command when its connection breaks, and queues
 * nothing while it is down. The lane repeats the take, with the same order ids and a newer ticket.
 */
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { NotExecuted } from '../engine/errors.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import { redisAddress } from './redis-address.ts';
import { replyReason } from './reply-reason.ts';

const CONNECT_TIMEOUT_MS = 2_000;
/** A cluster that is not ready by then is treated as unreachable. Longer than a failover takes. */
const CLUSTER_READY_MS = 15_000;
/** A connection that has not answered for this long is treated as dead. A take has its own, shorter deadline. */
const SILENCE_TIMEOUT_MS = 5_000;
const RECONNECT_STEP_MS = 50;
const RECONNECT_MAX_MS = 1_000;
/** How long a client may use an old map of the cluster if no redirect corrects it. */
const SLOTS_REFRESH_MS = 1_000;

/** A connection to one server, or to all servers of a cluster. Both have the same commands. */
export type RedisClient = Redis | Cluster;

/** The reply of a server that was the primary before a failover. By now its address leads to the new primary. */
export const DEMOTED = /^(READONLY|MASTERDOWN)\b/;
const RECONNECT_AND_RESEND = 2;

const common = {
  lazyConnect: true,
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENCE_TIMEOUT_MS,
  retryStrategy: (attempt: number) => Math.min(attempt * RECONNECT_STEP_MS, RECONNECT_MAX_MS),
};

/** For takes and locks: a command is sent at most once. An abandoned connection is dropped at once, without QUIT. */
const ONCE = { maxRetriesPerRequest: 0, enableOfflineQueue: false, disconnectTimeout: 0 };
/** For subscriptions: waits for the connection without limit. */
const PATIENT = { maxRetriesPerRequest: null };

/** A client of ioredis, of any copy of that package from version 5 on. */
export interface IoredisClient {
  readonly isCluster: boolean;
  duplicate(options?: object): unknown;
}

/** Options on which the locks rely, and in which a program's own client may differ. */
const LOCK_OPTIONS = {
  autoResubscribe: true,
  autoResendUnfulfilledCommands: true,
  commandTimeout: undefined,
  enableAutoPipelining: false,
  enableReadyCheck: true,
  monitor: false,
  readOnly: false,
  reconnectOnError: null,
  stringNumbers: false,
};

/**
 * Connections with the options of this client, one like `takeClient` and one like `subscriberClient`. The second has no key
 * prefix, because channels are given by their full names.
 */
export function clientsLike(client: IoredisClient): readonly [forCommands: Redis, forMessages: Redis] {
  const options = { ...common, ...LOCK_OPTIONS };
  return [
    client.duplicate({ ...options, ...ONCE }) as Redis,
    subscribingSafely(client.duplicate({ ...options, ...PATIENT, keyPrefix: '' }) as Redis),
  ];
}

function clientOf(text: string, options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const { url, tls } = redisAddress(text);
  return new Redis(url, { ...common, ...options, ...(tls && { tls }) });
}

/** For takes: a command is sent at most once. */
export function takeClient(url: string): Redis {
  return clientOf(url, ONCE);
}

/** For work that is idempotent and may wait: logs, cursors, sale records. A failed command is retried a few times. */
export function workClient(url: string): Redis {
  const reconnectOnError = (error: Error) =>
    DEMOTED.test(replyReason(error)) ? RECONNECT_AND_RESEND : false;
  return clientOf(url, { maxRetriesPerRequest: 3, reconnectOnError });
}

/**
 * For idempotent work on a cluster. Each command goes to the server of its key, and is sent again if that server fails;
 * never use it for takes.
 * @param urls of servers of the cluster, one at least; user, password, protocol and parameters of the first apply to
 * all
 */
export function clusterClient(urls: readonly string[]): Cluster {
  const nodes = urls.map((url) => new URL(url));
  const { username, password } = nodes[0]!;
  const { tls } = redisAddress(urls[0]!);
  // Each server has its own host name, so its certificate is compared with the address that the client connects to.
  if (tls) delete tls.servername;
  const cluster = new Cluster(
    nodes.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || 6379),
    })),
    {
      lazyConnect: true,
      slotsRefreshInterval: SLOTS_REFRESH_MS,
      clusterRetryStrategy: common.retryStrategy,
      // By default ioredis connects to the address of the name, which a certificate for the name does not contain.
      dnsLookup: (name, callback) => callback(null, name),
      redisOptions: {
        connectTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: SILENCE_TIMEOUT_MS,
        ...(username && { username: decodeURIComponent(username) }),
        ...(password && { password: decodeURIComponent(password) }),
        ...(tls && { tls }),
      },
    },
  );
  // ioredis sends ASKING before each command that a server redirects while a slot moves, and drops the promise. It closes connections to
  // servers that its map does not name, as that of a new primary. The command itself is sent again then.
  cluster.on('+node', (server: Redis) => handlingErrorsOf(server, 'asking'));
  return cluster;
}

/**
 * Closes a `clusterClient`, and refuses the commands that wait for a server. ioredis does so when the last connection has ended, and never if
 * there is none because no server can be reached, unless it has not begun to connect.
 */
export function disconnectCluster(cluster: Cluster): void {
  if (cluster.nodes().length === 0) cluster.status = 'wait';
  cluster.disconnect();
}

/** For a subscription at one of several servers: it never reconnects, so the subscriber can choose another server. */
export function singleUseClient(url: string): Redis {
  return clientOf(url, { retryStrategy: () => null });
}

/** For subscriptions: reconnects for ever, and then subscribes again. */
export function subscriberClient(url: string): Redis {
  return subscribingSafely(clientOf(url, PATIENT));
}

/** After a reconnection ioredis subscribes again and drops the promise. */
function subscribingSafely(client: Redis): Redis {
  return handlingErrorsOf(client, 'subscribe');
}

/**
 * For a command that ioredis sends of its own accord, and whose promise it drops. If the client is closed at that moment, the rejection
 * would be handled by nobody, which ends the process.
 */
function handlingErrorsOf(client: Redis, name: 'asking' | 'subscribe'): Redis {
  const commands = client as unknown as Record<typeof name, (...args: unknown[]) => Promise<unknown>>;
  const send = commands[name].bind(client);
  commands[name] = (...args: unknown[]) => {
    const sent = send(...args);
    sent.catch(() => {});
    return sent;
  };
  return client;
}

/**
 * Connects. Later connection errors show in `ready` and in failing commands instead of crashing the process.
 * @throws NotExecuted with the first error
 */
export async function connect<Client extends RedisClient>(client: Client): Promise<Client> {
  let first: Error | undefined;
  let unselected: Error | undefined;
  let server: string | undefined;
  // Why one of its servers can't be used. Then the cluster itself only says that it is not ready.
  const ofServer = (error: Error, address: string) => {
    server ??= address;
    first ??= error;
  };
  if (client instanceof Cluster) client.on('node error', ofServer);
  client.on('error', (error: Error & { readonly command?: { readonly name: string } }) => {
    first ??= error;
    if (error.command?.name === 'select') unselected ??= error;
  });
  try {
    await (client instanceof Cluster ? connectCluster(client) : client.connect());
    // The client would go on in database 0, which may be another program's.
    if (unselected) throw unselected;
    return client;
  } catch (error) {
    const cause = first ?? error;
    const why =
      cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : String(cause);
    throw new NotExecuted(`${nameOf(client, server)} can't be reached: ${why}`, cause);
  } finally {
    client.off('node error', ofServer);
  }
}

/** @param server of a cluster, the one that failed */
function nameOf(client: RedisClient, server: string | undefined): string {
  if (!(client instanceof Cluster)) return `Redis at ${client.options.host}:${client.options.port}`;
  return server ? `Redis at ${server}, a server of the cluster,` : 'the Redis Cluster';
}

/** What becomes of a connection that reconnects by itself. */
export interface ConnectionEvents {
  /** It has failed, or can't be made. Told once, until it is made again or the reason is another one. @param server `host:port` */
  lost(server: string, error: Error): void;
  /** It is made again. */
  restored(server: string): void;
}

export function watchConnection(client: Redis, events: ConnectionEvents | undefined): void {
  if (!events) return;
  const server = `${client.options.host}:${client.options.port}`;
  let reason: string | undefined;
  client.on('error', (error: Error) => {
    if (error.message === reason) return;
    reason = error.message;
    events.lost(server, error);
  });
  client.on('ready', () => {
    if (reason !== undefined) events.restored(server);
    reason = undefined;
  });
}

/**
 * The promise of ioredis' `connect` never settles if a server was found and then failed the check whether the cluster
 * is ready: the client connects again by itself, but the first promise stays pending.
 */
async function connectCluster(cluster: Cluster): Promise<void> {
  const ready = new Promise<void>((resolve, reject) => {
    cluster.once('ready', resolve);
    cluster.connect().catch(reject);
  });
  await withTimeout(CLUSTER_READY_MS, ready);
}

/**
 * Sends all commands of one turn of the event loop in one write. A system call for each command costs more than the
 * command: with eight segments a turn has eight takes and a hint.
 *
 * @param schedule calls its argument at the end of the turn, which sends what was gathered
 * @returns a function to call before each command
 */
export function corking(
  client: Redis,
  schedule: (uncork: () => void) => void = process.nextTick,
): () => void {
  let corked = false;
  return () => {
    const { stream } = client;
    if (corked || !stream) return;
    corked = true;
    stream.cork();
    schedule(() => {
      corked = false;
      stream.uncork();
    });
  };
}
