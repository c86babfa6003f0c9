/** What a program says when it opens a shop of its own, and the configuration that follows from it. */
import type { Config } from '../config/config.ts';
import { ConfigError, type ConfigFault, loadConfig } from '../config/load-config.ts';
import { type SettingName, settingNames, settings } from '../config/settings.ts';
import type { OrderEvent } from '../events/order-event.ts';

/** Writes one line: what it is about, then a sentence. `console` is one, and so are Pino's and Fastify's loggers. */
export type LogLine = (details: object, message: string) => void;

/** Where a shop tells what goes wrong in the background. */
export interface Logger {
  readonly info: LogLine;
  readonly warn: LogLine;
  readonly error: LogLine;
}

/**
 * Settings of a shop in the own process. All may be left out. They are those of docs/configuration.md under their names in
 * camel case; the environment is not read.
 */
export interface OpenOptions {
  /**
   * Redis that holds the stock and the order logs, or servers of a Redis Cluster (`redis://a:6379,b:6379`); `rediss://` for
   * TLS. Default: the stock is in this process, and no other process can sell it. With it, give `databaseUrl` or `dataDir`.
   */
  readonly redisUrl?: string | undefined;
  /** Postgres that holds sales and orders. Default: PGlite, a Postgres in a thread of this process, in `dataDir`. */
  readonly databaseUrl?: string | undefined;
  /** Beginning of every Redis key, the same in all processes of the shop: 1 to 64 characters. Default `stockade:`. */
  readonly keyPrefix?: string | undefined;
  /** Folder of PGlite's data, for nothing else and for one process at a time. Default: a temporary one, which `close` removes. */
  readonly dataDir?: string | undefined;
  /** Connections to Postgres, 1 to 100, beside one for locks. Default 5. */
  readonly pgPoolMax?: number | undefined;
  /** A purchase is answered within so many milliseconds, 100 to 30,000. Default 2,000. */
  readonly requestDeadlineMs?: number | undefined;
  /** One call to Redis may take so many milliseconds, 10 to 29,999, and less than `requestDeadlineMs`. Default 500. */
  readonly takeTimeoutMs?: number | undefined;
  /** Purchases that may wait in front of one segment, 1 to 1,000,000; more are `busy`. Default 4,096. */
  readonly laneCapacity?: number | undefined;
  /** Orders in the log of one segment that are not in Postgres yet, 256 to 100,000,000; at the bound purchases are `busy`. Default 1,000,000. */
  readonly logBacklogMax?: number | undefined;
  /** How units are taken: `script`, or `lock` for the same under the segment's lock, which needs `redisUrl`. Default `script`. */
  readonly strategy?: 'script' | 'lock' | undefined;
  /** Path of a JavaScript module whose export `inside` does the shop's own work under that lock (docs/locks.md). */
  readonly lockWork?: string | undefined;
  /** Whether this process carries orders to Postgres. False needs `redisUrl`, and a process of the shop that does. Default true. */
  readonly sync?: boolean | undefined;
  /** Orders in one transaction, 1 to 50,000. Default 4,000. */
  readonly syncBatchRows?: number | undefined;
  /** How long orders may wait for Postgres while buyers keep this process busy, in milliseconds, 0 to 600,000. Default 15,000. */
  readonly syncYieldMs?: number | undefined;
  /** How often uneven segments are evened out, in milliseconds, up to 3,600,000; 0: never. Default 1,000. */
  readonly rebalanceEveryMs?: number | undefined;
  /** Order events that the stream in Redis keeps, up to 1,000,000,000; 0: no stream. Default 100,000. */
  readonly eventsStreamMax?: number | undefined;
  /** How long order events may wait while buyers keep this process busy, in milliseconds, 0 to 600,000. Default 15,000. */
  readonly eventsYieldMs?: number | undefined;
  /** Where order events are sent by HTTP POST. */
  readonly webhookUrl?: string | undefined;
  /** Key of the signature of what is sent there, 16 characters or more. */
  readonly webhookSecret?: string | undefined;
  /** How long one request to the webhook may take, in milliseconds, 10 to 120,000. Default 10,000. */
  readonly webhookTimeoutMs?: number | undefined;
  /** Attempts before events become dead letters, 1 to 1,000. Default 12. */
  readonly webhookMaxAttempts?: number | undefined;
  /** How long `close` waits for operations under way, in milliseconds, 0 to 600,000. Default 10,000. */
  readonly shutdownGraceMs?: number | undefined;
  /**
   * Is given order events, in order and at least once, instead of the webhook. What it throws or rejects with is logged, and
   * the same events come again, `webhookMaxAttempts` times. Give it to every process of the shop: one of them is called.
   */
  readonly onOrderEvents?: OrderEventHandler | undefined;
  /** Default: nothing is written. */
  readonly logger?: Logger | undefined;
}

/** @param signal aborted when the shop is closed meanwhile: the events come again */
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
  'eventsStreamMax',
  'eventsYieldMs',
  'webhookUrl',
  'webhookSecret',
  'webhookTimeoutMs',
  'webhookMaxAttempts',
  'shutdownGraceMs',
] as const satisfies readonly (SettingName & keyof OpenOptions)[];

const NAMES: readonly string[] = [...OPTIONS, 'onOrderEvents', 'logger'];

/** Settings of the ports have no say here. */
export const SHARED_OPTIONS: readonly SettingName[] = OPTIONS;

/** @throws ConfigError with all faults at once, by the names of the options */
export function configOf(options: OpenOptions): Config {
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

/** What no schema of a setting looks at. */
function misused(options: OpenOptions): ConfigFault[] {
  const faults = Object.keys(options)
    .filter((name) => !NAMES.includes(name))
    .map((field) => ({ field, problem: `is no option: there are ${NAMES.join(', ')}` }));
  const { logger, onOrderEvents, webhookUrl } = options;
  if (onOrderEvents !== undefined && typeof onOrderEvents !== 'function')
    faults.push({ field: 'onOrderEvents', problem: 'must be a function' });
  if (onOrderEvents !== undefined && webhookUrl !== undefined)
    faults.push({ field: 'onOrderEvents', problem: 'takes the place of webhookUrl: give one of them' });
  const isLogger = (['info', 'warn', 'error'] as const).every(
    (level) => typeof logger?.[level] === 'function',
  );
  if (logger !== undefined && !isLogger)
    faults.push({ field: 'logger', problem: 'must have the methods info, warn and error' });
  return faults;
}

/** Redis outlives the process: beside it, a database that goes with the process would be another shop's the next time. */
function missing({ redisUrl, databaseUrl, dataDir }: OpenOptions): ConfigFault[] {
  if (redisUrl === undefined || databaseUrl !== undefined || dataDir !== undefined) return [];
  return [
    {
      field: 'redisUrl',
      problem: 'needs a database that stays as long as Redis does: give databaseUrl, or dataDir for PGlite',
    },
  ];
}

/** A fault in the words of who calls, and not of who sets the environment. */
function byOption({ field, problem }: ConfigFault): ConfigFault {
  return { field: inOptions(field), problem: inOptions(problem) };
}

function inOptions(text: string): string {
  return text.replace(/\b[A-Z]+(?:_[A-Z]+)*\b/g, (word) => OPTION_OF.get(word) ?? word);
}

const OPTION_OF: ReadonlyMap<string, string> = new Map(
  settingNames.map((name) => [settings[name].env, name]),
);
