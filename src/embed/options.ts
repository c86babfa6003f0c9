/** The options of an embedded shop, and the configuration that is made from them. */
import type { Config } from '../config/config.ts';
import { ConfigError, type ConfigFault, loadConfig } from '../config/load-config.ts';
import { type SettingName, settingNames, settings } from '../config/settings.ts';
import type { OrderEvent } from '../events/order-event.ts';

/** Writes one line: the values concerned, then a sentence. */
export type LogLine = (details: object, message: string) => void;

/** Where a shop logs what happens in the background. `console` will do, and so will the loggers of Pino and Fastify. */
export interface Logger {
  readonly info: LogLine;
  readonly warn: LogLine;
  readonly error: LogLine;
}

/**
 * Settings of an embedded shop, all optional. They are those of docs/configuration.md, with names in camel case. The environment
 * is not read.
 */
export interface OpenOptions {
  /**
   * Redis that holds the stock and the order logs, or servers of a Redis Cluster (`redis://a:6379,b:6379`); `rediss://` for
   * TLS. Also give `databaseUrl` or `dataDir` then. Default: the stock is in this process, and no other process can sell it.
   */
  readonly redisUrl?: string | undefined;
  /** Postgres that holds sales and orders. Default: PGlite, a Postgres in a thread of this process, in `dataDir`. */
  readonly databaseUrl?: string | undefined;
  /** Prefix of every Redis key, the same in all processes of the shop: 1 to 64 characters. Default `stockade:`. */
  readonly keyPrefix?: string | undefined;
  /**
   * Folder of PGlite's data. Use it for nothing else, and in one process at a time. Default: a temporary folder, which `close`
   * removes.
   */
  readonly dataDir?: string | undefined;
  /** Most connections to Postgres, 1 to 100, and one more for locks. Default 5. */
  readonly pgPoolMax?: number | undefined;
  /** Time within which a purchase is answered, in milliseconds, 100 to 30,000. Default 2,000. */
  readonly requestDeadlineMs?: number | undefined;
  /** Time that one call to Redis may take, in milliseconds, 10 to 29,999, and less than `requestDeadlineMs`. Default 500. */
  readonly takeTimeoutMs?: number | undefined;
  /** Purchases that may wait in front of one segment, 1 to 1,000,000; more are answered `busy`. Default 4,096. */
  readonly laneCapacity?: number | undefined;
  /**
   * Orders in the log of one segment that are not in Postgres yet, 256 to 100,000,000. Above that, purchases are answered
   * `busy`. Default 1,000,000.
   */
  readonly logBacklogMax?: number | undefined;
  /** How units are taken: `script`, or `lock` to do so under the segment's lock, which needs `redisUrl`. Default `script`. */
  readonly strategy?: 'script' | 'lock' | undefined;
  /** Path of a JavaScript module whose export `inside` does the shop's own work under that lock (docs/locks.md). */
  readonly lockWork?: string | undefined;
  /**
   * Whether this process copies orders to Postgres. False needs `redisUrl`, and another process of the shop that does it.
   * Default true.
   */
  readonly sync?: boolean | undefined;
  /** Most orders in one Postgres transaction, 1 to 50,000. Default 4,000. */
  readonly syncBatchRows?: number | undefined;
  /** How long orders may wait for Postgres while buyers keep this process busy, in milliseconds, 0 to 600,000. Default 15,000. */
  readonly syncYieldMs?: number | undefined;
  /** How often uneven segments are evened out, in milliseconds, up to 3,600,000. 0: never. Default 1,000. */
  readonly rebalanceEveryMs?: number | undefined;
  /** Days after which a sale that has ended or was closed is archived, up to 36,500. 0: never. Default 30. */
  readonly archiveAfterDays?: number | undefined;
  /** Order events that the stream in Redis keeps, up to 1,000,000,000. 0: no stream. Default 100,000. */
  readonly eventsStreamMax?: number | undefined;
  /** How long order events may wait while buyers keep this process busy, in milliseconds, 0 to 600,000. Default 15,000. */
  readonly eventsYieldMs?: number | undefined;
  /** URL to which order events are sent by HTTP POST. */
  readonly webhookUrl?: string | undefined;
  /** Key of the signature in each of these requests, at least 16 characters. */
  readonly webhookSecret?: string | undefined;
  /** How long one request to the webhook may take, in milliseconds, 10 to 120,000. Default 10,000. */
  readonly webhookTimeoutMs?: number | undefined;
  /** Attempts before events become dead letters, 1 to 1,000. Default 12. */
  readonly webhookMaxAttempts?: number | undefined;
  /** How long `close` waits for operations under way, in milliseconds, 0 to 600,000. Default 10,000. */
  readonly shutdownGraceMs?: number | undefined;
  /**
   * Gets the order events instead of a webhook, in order and at least once. If it throws or rejects, the error is logged and it
   * gets the same events again, `webhookMaxAttempts` times in all. Give it to every program of the shop that runs sync: one of them
   * is called. Nodes beside them need `SYNC=off`: they have no handler, and would delete the events.
   */
  readonly onOrderEvents?: OrderEventHandler | undefined;
  /** What it throws is dropped. Default: nothing is logged. */
  readonly logger?: Logger | undefined;
}

/**
 * @param signal is aborted if the shop is closed meanwhile. If the handler does not end within a second after that, the events are
 * delivered again later
 */
export type OrderEventHandler = (events: readonly OrderEvent[], signal: AbortSignal) => Promise<void> | void;

const OPTIONS = [
  'redisUrl',
  'databaseUrl',
  'keyPrefix',
  'dataDir',
  'pgPoolMax',
  'requestDeadlineMs',
  'takeTimeoutMs',
  'laneCapacity',
  'logBacklogMax',
  'strategy',
  'lockWork',
  'sync',
  'syncBatchRows',
  'syncYieldMs',
  'rebalanceEveryMs',
  'archiveAfterDays',
  'eventsStreamMax',
  'eventsYieldMs',
  'webhookUrl',
  'webhookSecret',
  'webhookTimeoutMs',
  'webhookMaxAttempts',
  'shutdownGraceMs',
] as const satisfies readonly (SettingName & keyof OpenOptions)[];

const NAMES: readonly string[] = [...OPTIONS, 'onOrderEvents', 'logger'];

/** The settings that an embedded shop has, and so may compare with other processes: all but those of the ports, which it lacks. */
export const SHARED_OPTIONS: readonly SettingName[] = OPTIONS;

/** @throws ConfigError with all faults at once, by the names of the options */
export function configOf(options: OpenOptions): Config {
  if (!isRecord(options)) throw new ConfigError([{ field: 'options', problem: 'must be an object' }]);
  const faults = [...misused(options), ...missing(options)];
  const given = Object.fromEntries(OPTIONS.map((name) => [name, options[name]]));
  try {
    const config = loadConfig({}, {}, given, OPTIONS);
    if (faults.length === 0) return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    faults.push(...error.faults.map(byOption));
  }
  throw new ConfigError(faults);
}

/** A program without types may give anything: without options that count, the shop would sell from memory. */
function isRecord(options: unknown): boolean {
  return (
    typeof options === 'object' && options !== null && !(Array.isArray(options) || Symbol.iterator in options)
  );
}

/** Faults that the schemas of the settings do not find. */
function misused(options: OpenOptions): ConfigFault[] {
  const faults = Object.keys(options)
    .filter((name) => !NAMES.includes(name))
    .map((field) => ({ field, problem: `is not an option: the options are ${NAMES.join(', ')}` }));
  const { logger, onOrderEvents, webhookUrl } = options;
  if (onOrderEvents !== undefined && typeof onOrderEvents !== 'function')
    faults.push({ field: 'onOrderEvents', problem: 'must be a function' });
  if (onOrderEvents !== undefined && webhookUrl !== undefined)
    faults.push({ field: 'onOrderEvents', problem: 'replaces webhookUrl: give only one of them' });
  const isLogger = (['info', 'warn', 'error'] as const).every(
    (level) => typeof logger?.[level] === 'function',
  );
  if (logger !== undefined && !isLogger)
    faults.push({ field: 'logger', problem: 'must have the methods info, warn and error' });
  return faults;
}

/**
 * A Redis without a permanent database. Redis keeps its data when the process ends, but a temporary PGlite does not; at the next
 * start the two would not belong together.
 */
function missing({ redisUrl, databaseUrl, dataDir }: OpenOptions): ConfigFault[] {
  if (redisUrl === undefined || databaseUrl !== undefined || dataDir !== undefined) return [];
  return [
    {
      field: 'redisUrl',
      problem: 'needs a database that keeps its data as Redis does: give databaseUrl, or dataDir for PGlite',
    },
  ];
}

/** The fault with names of options instead of environment variables. */
function byOption({ field, problem }: ConfigFault): ConfigFault {
  return { field: inOptions(field), problem: inOptions(problem) };
}

function inOptions(text: string): string {
  return text.replace(/\b[A-Z]+(?:_[A-Z]+)*\b/g, (word) => OPTION_OF.get(word) ?? word);
}

const OPTION_OF: ReadonlyMap<string, string> = new Map(
  settingNames.map((name) => [settings[name].env, name]),
);
