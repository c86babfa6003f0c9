/**
 * Every setting, once. The environment, the command line, the help texts and the table in the README are all read off
 * this table, so that none of them can drift from the others.
 */
import { availableParallelism } from 'node:os';
import type { z } from 'zod';
import { parseTrustedProxies, TRUSTED_PROXIES_FORM } from '../admission/addresses.ts';
import { MAX_WORK_BITS } from '../admission/proof-of-work.ts';
import { parseRatePolicy, RATE_POLICY_FORM } from '../admission/rate-policy.ts';
import { MAX_BATCH_ORDERS } from '../engine/limits.ts';
import type { Config } from './config.ts';
import { postgresUrl } from './postgres-url.ts';
import { redisUrl } from './redis-urls.ts';
import { either, host, matching, oneOf, plainUrl, readable, secret, text, url, whole } from './schemas.ts';
import { originOnly } from './secret.ts';

export type SettingGroup =
  | 'Stores'
  | 'Listening'
  | 'Buyers'
  | 'Admission'
  | 'Operators'
  | 'Limits'
  | 'Sync'
  | 'Events'
  | 'Process';

export interface Setting<T> {
  readonly env: string;
  /** As commander takes it. Missing for secrets: a command line can be read by everyone on the machine. */
  readonly flag?: string;
  readonly group: SettingGroup;
  readonly schema: z.ZodType<T>;
  /** What holds if nobody has set it; a function if that depends on other settings. */
  readonly fallback: T | ((others: Partial<Config>) => T);
  /** The fallback in words, where its value alone would not explain itself. */
  readonly fallbackText?: string;
  readonly description: string;
  /**
   * All processes of a shop must have the same, or buyers, tokens and events are treated by which of them they come to: the value
   * itself, or the file that it names. The others may differ from machine to machine.
   */
  readonly shared?: 'value' | 'file';
}

const MOST_WORKERS_BY_DEFAULT = 4;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const workersByDefault = ({ redisUrl }: Partial<Config>) =>
  redisUrl === undefined ? 1 : Math.min(availableParallelism(), MOST_WORKERS_BY_DEFAULT);

export const settings: { readonly [K in keyof Config]: Setting<Config[K]> } = {
  redisUrl: {
    env: 'REDIS_URL',
    flag: '--redis-url <url>',
    group: 'Stores',
    schema: redisUrl,
    fallback: undefined,
    fallbackText: 'the in-process backend',
    description:
      'Redis that holds the stock and the order logs, or servers of a Redis Cluster (`redis://a:6379,b:6379`); `rediss://` for TLS. Needed for more than one worker or node.',
  },
  databaseUrl: {
    env: 'DATABASE_URL',
    flag: '--database-url <url>',
    group: 'Stores',
    schema: postgresUrl,
    fallback: undefined,
    fallbackText: 'PGlite in `DATA_DIR`',
    description: 'Postgres that holds sales and orders: the truth. With `?sslmode=verify-full` for TLS.',
  },
  keyPrefix: {
    env: 'KEY_PREFIX',
    flag: '--key-prefix <text>',
    group: 'Stores',
    schema: matching(/^[\x21-\x7a|~]{1,64}$/, 'must be 1 to 64 visible ASCII characters without braces'),
    fallback: 'stockade:',
    description: 'Beginning of every Redis key and channel. All nodes of one shop share it.',
  },
  dataDir: {
    env: 'DATA_DIR',
    flag: '--data-dir <path>',
    group: 'Stores',
    schema: text,
    fallback: '.stockade',
    description:
      "Folder of PGlite's data and of the operators' token, for nothing else: other users of the machine are kept out.",
  },
  pgPoolMax: {
    env: 'PG_POOL_MAX',
    flag: '--pg-pool-max <n>',
    group: 'Stores',
    schema: whole(1, 100),
    fallback: 5,
    description:
      'Postgres connections of the main thread, at most; beside them are 2 per worker and 1 for locks. PGlite has 1.',
  },
  host: {
    env: 'HOST',
    flag: '--host <address>',
    group: 'Listening',
    schema: host,
    fallback: '127.0.0.1',
    description: 'Address of the public port; `0.0.0.0` for all.',
  },
  port: {
    env: 'PORT',
    flag: '--port <n>',
    group: 'Listening',
    schema: whole(0, 65_535),
    fallback: 8_080,
    description: 'Public port, for buyers. 0: any free one.',
  },
  workers: {
    env: 'WORKERS',
    flag: '--workers <n>',
    group: 'Listening',
    schema: whole(1, 64),
    fallback: workersByDefault,
    fallbackText: `1 without \`REDIS_URL\`, else the number of cores, at most ${MOST_WORKERS_BY_DEFAULT}`,
    description: 'Threads that serve buyers. More than 1 needs `REDIS_URL`.',
  },
  buyerAuth: {
    env: 'BUYER_AUTH',
    flag: '--buyer-auth <how>',
    group: 'Buyers',
    schema: oneOf('header', 'jwt'),
    fallback: 'header',
    description: 'How a buyer is known: `header` (`X-Buyer-Id`, set by a gateway) or `jwt` (claim `sub`).',
    shared: 'value',
  },
  trustBuyerHeader: {
    env: 'TRUST_BUYER_HEADER',
    flag: '--trust-buyer-header <0|1>',
    group: 'Buyers',
    schema: either('1', '0'),
    fallback: false,
    fallbackText: '0',
    description:
      '1: only a gateway that sets `X-Buyer-Id` itself can reach `HOST`, so that it need not be loopback. Needed for a gateway on the same machine too, if it passes on the shop’s `Host`: without it only names of the loopback are answered.',
  },
  jwtSecret: {
    env: 'JWT_SECRET',
    group: 'Buyers',
    schema: secret(32),
    fallback: undefined,
    description: "HS256 key of the buyers' tokens, 32 characters or more.",
    shared: 'value',
  },
  jwtJwksUrl: {
    env: 'JWT_JWKS_URL',
    flag: '--jwt-jwks-url <url>',
    group: 'Buyers',
    schema: plainUrl(),
    fallback: undefined,
    description: "Where the keys of the buyers' tokens are published, instead of `JWT_SECRET`.",
    shared: 'value',
  },
  jwtAudience: {
    env: 'JWT_AUDIENCE',
    flag: '--jwt-audience <text>',
    group: 'Buyers',
    schema: text,
    fallback: undefined,
    description: 'Claim `aud` that a token must carry.',
    shared: 'value',
  },
  jwtIssuer: {
    env: 'JWT_ISSUER',
    flag: '--jwt-issuer <text>',
    group: 'Buyers',
    schema: text,
    fallback: undefined,
    description: 'Claim `iss` that a token must carry.',
    shared: 'value',
  },
  publicPayment: {
    env: 'PUBLIC_PAYMENT',
    flag: '--public-payment <0|1>',
    group: 'Buyers',
    schema: either('1', '0'),
    fallback: false,
    fallbackText: '0',
    description:
      '1: buyers may mark their own orders paid and redeemed at the public port. For trials only: any buyer can make an order paid without paying.',
    shared: 'value',
  },
  rateLimitBuyer: {
    env: 'RATE_LIMIT_BUYER',
    flag: '--rate-limit-buyer <n/s>',
    group: 'Admission',
    schema: readable(parseRatePolicy, RATE_POLICY_FORM),
    fallback: undefined,
    fallbackText: 'no limit',
    description:
      'Requests of one buyer, as `requests/seconds` or `requests/seconds/burst`: `10/60`, `5/1/20`. More are answered `rate_limited`. Each node counts by itself.',
    shared: 'value',
  },
  rateLimitAddress: {
    env: 'RATE_LIMIT_ADDRESS',
    flag: '--rate-limit-address <n/s>',
    group: 'Admission',
    schema: readable(parseRatePolicy, RATE_POLICY_FORM),
    fallback: undefined,
    fallbackText: 'no limit',
    description:
      'The same for one address (IPv6: one network of 64 bits, and 64 times as much for one of 48), looked at before anything else. Behind a gateway it needs `TRUSTED_PROXIES`, or all buyers share the gateway’s.',
    shared: 'value',
  },
  rateLimitConnections: {
    env: 'RATE_LIMIT_CONNECTIONS',
    flag: '--rate-limit-connections <n/s>',
    group: 'Admission',
    schema: readable(parseRatePolicy, RATE_POLICY_FORM),
    fallback: undefined,
    fallbackText: 'no limit',
    description:
      'Connections that one address may open, such as `20/10/100`; more are refused as those beyond `MAX_CONNECTIONS` are. Not those of the loopback and of `TRUSTED_PROXIES`, which must be networks then.',
    shared: 'value',
  },
  rateLimitKeys: {
    env: 'RATE_LIMIT_KEYS',
    flag: '--rate-limit-keys <n>',
    group: 'Admission',
    schema: whole(1_024, 67_108_864),
    fallback: 1_048_576,
    description:
      'Buyers, and as many addresses of each limit, that a node remembers at a time, 8 bytes each, rounded up to a power of two; those who have waited longest are forgotten first.',
  },
  trustedProxies: {
    env: 'TRUSTED_PROXIES',
    flag: '--trusted-proxies <list>',
    group: 'Admission',
    schema: readable(parseTrustedProxies, TRUSTED_PROXIES_FORM),
    fallback: undefined,
    fallbackText: 'none',
    description:
      'Proxies in front of this node whose `FORWARDED_HEADER` is believed: their number, or their addresses and networks (`10.0.0.0/8,192.0.2.1`).',
  },
  forwardedHeader: {
    env: 'FORWARDED_HEADER',
    flag: '--forwarded-header <name>',
    group: 'Admission',
    schema: oneOf('x-forwarded-for', 'forwarded'),
    fallback: 'x-forwarded-for',
    description: 'Where they write who has asked them. The other header is not looked at.',
  },
  purchaseTokenTtlSeconds: {
    env: 'PURCHASE_TOKEN_TTL_SECONDS',
    flag: '--purchase-token-ttl-seconds <n>',
    group: 'Admission',
    schema: whole(1, 86_400),
    fallback: 300,
    description: 'How long a purchase token is good for.',
    shared: 'value',
  },
  purchaseTokenSecret: {
    env: 'PURCHASE_TOKEN_SECRET',
    group: 'Admission',
    schema: secret(32),
    fallback: undefined,
    fallbackText: 'a random one, kept in Postgres',
    description: 'Key of the purchase tokens, the same at all nodes, 32 characters or more.',
    shared: 'value',
  },
  purchaseTokenOtherSecret: {
    env: 'PURCHASE_TOKEN_OTHER_SECRET',
    group: 'Admission',
    schema: secret(32),
    fallback: undefined,
    description:
      'A second key whose tokens are accepted too: the next one, then the last one, while keys are changed.',
    shared: 'value',
  },
  challenge: {
    env: 'CHALLENGE',
    flag: '--challenge <pow|file>',
    group: 'Admission',
    schema: text,
    fallback: undefined,
    fallbackText: 'none',
    description:
      'What a buyer has to do for a purchase token: `pow`, a piece of work for his processor, or a JavaScript module whose exports `issue` and `verify` ask for something else, such as a captcha.',
    shared: 'file',
  },
  challengeBits: {
    env: 'CHALLENGE_BITS',
    flag: '--challenge-bits <n>',
    group: 'Admission',
    schema: whole(1, MAX_WORK_BITS),
    fallback: 18,
    description: 'Difficulty of `CHALLENGE=pow`: 2 to this power hashes on average.',
    shared: 'value',
  },
  opsHost: {
    env: 'OPS_HOST',
    flag: '--ops-host <address>',
    group: 'Operators',
    schema: host,
    fallback: '127.0.0.1',
    description: 'Address of the ops port.',
  },
  opsPort: {
    env: 'OPS_PORT',
    flag: '--ops-port <n>',
    group: 'Operators',
    schema: whole(0, 65_535),
    fallback: 9_090,
    description: 'Port for operators, metrics and health. 0: any free one.',
  },
  opsToken: {
    env: 'OPS_TOKEN',
    group: 'Operators',
    schema: secret(16),
    fallback: undefined,
    fallbackText: 'a random one, kept in `DATA_DIR`/ops-token',
    description: 'Bearer token of the ops port, 16 characters or more.',
  },
  opsUrl: {
    env: 'OPS_URL',
    flag: '--ops-url <url>',
    group: 'Operators',
    schema: url('http:', 'https:'),
    fallback: undefined,
    fallbackText: '`OPS_HOST` and `OPS_PORT`',
    description: 'Ops port of the running node that commands such as `sale` and `verify` talk to.',
  },
  requestDeadlineMs: {
    env: 'REQUEST_DEADLINE_MS',
    flag: '--request-deadline-ms <n>',
    group: 'Limits',
    schema: whole(100, 30_000),
    fallback: 2_000,
    description:
      'A purchase is answered within this time, if need be with `unknown`; what buyers read, if need be with `unavailable`. Fetching keys from `JWT_JWKS_URL` may take as long once more.',
  },
  takeTimeoutMs: {
    env: 'TAKE_TIMEOUT_MS',
    flag: '--take-timeout-ms <n>',
    group: 'Limits',
    schema: whole(10, 29_999),
    fallback: 500,
    description: 'How long one call to Redis may take before it is asked again; below `REQUEST_DEADLINE_MS`.',
  },
  laneCapacity: {
    env: 'LANE_CAPACITY',
    flag: '--lane-capacity <n>',
    group: 'Limits',
    schema: whole(1, 1_000_000),
    fallback: 4_096,
    description: 'Requests that may wait in front of one segment; more are answered `busy`.',
  },
  maxConnections: {
    env: 'MAX_CONNECTIONS',
    flag: '--max-connections <n>',
    group: 'Limits',
    schema: whole(1, 1_000_000),
    fallback: 16_000,
    description:
      'Connections of buyers that a node serves, shared out among its workers. Above it requests are answered `busy` and their connections closed; above nine eighths of it new connections are closed at once.',
  },
  logBacklogMax: {
    env: 'LOG_BACKLOG_MAX',
    flag: '--log-backlog-max <n>',
    group: 'Limits',
    // Below the largest batch no full lane could ever sell.
    schema: whole(MAX_BATCH_ORDERS, 100_000_000),
    fallback: 1_000_000,
    description:
      "Orders in one segment's log that Postgres does not have yet; at this bound takes are answered `busy`.",
    shared: 'value',
  },
  strategy: {
    env: 'STRATEGY',
    flag: '--strategy <script|lock>',
    group: 'Limits',
    schema: oneOf('script', 'lock'),
    fallback: 'script',
    description:
      "How units are taken: `script`, or `lock` for the same under the segment's lock. `lock` needs `REDIS_URL`.",
    shared: 'value',
  },
  lockWork: {
    env: 'LOCK_WORK',
    flag: '--lock-work <file>',
    group: 'Limits',
    schema: text,
    fallback: undefined,
    description:
      "A JavaScript module whose export `inside` does the shop's own work under the lock, and may refuse orders. Needs `STRATEGY=lock`.",
    shared: 'file',
  },
  sync: {
    env: 'SYNC',
    flag: '--sync <on|off>',
    group: 'Sync',
    schema: either('on', 'off'),
    fallback: true,
    fallbackText: 'on',
    description:
      'Whether this node carries the order logs to Postgres. Off: `stockade sync` must run elsewhere.',
  },
  syncBatchRows: {
    env: 'SYNC_BATCH_ROWS',
    flag: '--sync-batch-rows <n>',
    group: 'Sync',
    schema: whole(1, 50_000),
    fallback: 4_000,
    description: 'Orders in one Postgres transaction, at most.',
  },
  syncYieldMs: {
    env: 'SYNC_YIELD_MS',
    flag: '--sync-yield-ms <n>',
    group: 'Sync',
    schema: whole(0, 600_000),
    fallback: 15_000,
    description:
      'How long orders may lie in the logs while this node is busy with buyers and none of them waits for a commit; 0: never.',
  },
  rebalanceEveryMs: {
    env: 'REBALANCE_EVERY_MS',
    flag: '--rebalance-every-ms <n>',
    group: 'Sync',
    schema: whole(0, 3_600_000),
    fallback: 1_000,
    description:
      'How often sales are looked at whose segments may have become uneven, to even them out before buyers wait for it; 0: never.',
  },
  eventsStreamMax: {
    env: 'EVENTS_STREAM_MAX',
    flag: '--events-stream-max <n>',
    group: 'Events',
    schema: whole(0, 1_000_000_000),
    fallback: 100_000,
    description:
      'Order events that the stream in Redis keeps, roughly: the oldest make room for new ones. 0: no stream.',
    shared: 'value',
  },
  eventsYieldMs: {
    env: 'EVENTS_YIELD_MS',
    flag: '--events-yield-ms <n>',
    group: 'Events',
    schema: whole(0, 600_000),
    fallback: 15_000,
    description:
      'How long order events may wait while this node is busy with buyers, or behind with their orders; 0: not at all.',
  },
  webhookUrl: {
    env: 'WEBHOOK_URL',
    flag: '--webhook-url <url>',
    group: 'Events',
    schema: plainUrl(originOnly),
    fallback: undefined,
    description: 'Where order events are sent by HTTP POST.',
    shared: 'value',
  },
  webhookSecret: {
    env: 'WEBHOOK_SECRET',
    group: 'Events',
    schema: secret(16),
    fallback: undefined,
    description: 'Key of the signature that each request to `WEBHOOK_URL` carries, 16 characters or more.',
    shared: 'value',
  },
  webhookTimeoutMs: {
    env: 'WEBHOOK_TIMEOUT_MS',
    flag: '--webhook-timeout-ms <n>',
    group: 'Events',
    schema: whole(10, 120_000),
    fallback: 10_000,
    description: 'How long one request to `WEBHOOK_URL` may take before it is tried again.',
  },
  webhookMaxAttempts: {
    env: 'WEBHOOK_MAX_ATTEMPTS',
    flag: '--webhook-max-attempts <n>',
    group: 'Events',
    schema: whole(1, 1_000),
    fallback: 12,
    description:
      'Attempts before events become dead letters and the next ones are sent; with pauses that grow to a minute, 12 take some 4 minutes.',
    shared: 'value',
  },
  logLevel: {
    env: 'LOG_LEVEL',
    flag: '--log-level <level>',
    group: 'Process',
    schema: oneOf(...LOG_LEVELS),
    fallback: 'info',
    description: `${LOG_LEVELS.join(', ')}. Commands that end by themselves default to \`warn\`.`,
  },
  shutdownGraceMs: {
    env: 'SHUTDOWN_GRACE_MS',
    flag: '--shutdown-grace-ms <n>',
    group: 'Process',
    schema: whole(0, 600_000),
    fallback: 10_000,
    description:
      'How long requests under way are answered after a signal to stop, at both ports together; 5 s later at most the process has ended.',
  },
};

export type SettingName = keyof Config;

export const settingNames = Object.keys(settings) as SettingName[];
