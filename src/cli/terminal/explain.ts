/**
 * Errors in words: what happened, with which values, what to do. Exit code 2 says that the command or its
 * configuration was wrong and nothing was tried; 1 that what was asked for does not hold.
 */
import { CommanderError } from 'commander';
import { ConfigError } from '../../config/load-config.ts';
import { InvalidInput, StockadeError } from '../../engine/errors.ts';
import { invokedAs } from './invoked-as.ts';

export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

export type ExitCode = typeof EXIT_OK | typeof EXIT_FAILED | typeof EXIT_USAGE | typeof EXIT_INTERRUPTED;

/** Ctrl-C during a command that ends by itself: neither a success nor a fault of the command. */
export class Interrupted extends StockadeError {
  constructor(signal: string) {
    super('interrupted', `interrupted by ${signal}; nothing more is done`);
  }
}

/** What was given on the command line can't be used. */
export class UsageError extends StockadeError {
  constructor(message: string) {
    super('usage', message);
  }
}

export interface Explanation {
  readonly exitCode: ExitCode;
  /** For stderr; empty if it has been said already. */
  readonly lines: readonly string[];
  /** For stdout under `--json`; nothing if the command did what was asked (help, version). */
  readonly json: { readonly error: Readonly<Record<string, unknown>> } | undefined;
}

export function explain(error: unknown): Explanation {
  if (error instanceof CommanderError) return explainCommander(error);
  if (error instanceof ConfigError || error instanceof InvalidInput) {
    return {
      exitCode: EXIT_USAGE,
      lines: error.faults.map(({ field, problem }) => `error: ${field} ${problem}`),
      json: { error: { code: error.code, message: error.message, faults: error.faults } },
    };
  }
  const message = describe(error);
  const advice = adviceFor(error);
  return {
    exitCode: exitCodeOf(error),
    lines: [`error: ${message}`, ...(advice ? [`  ${advice}`] : [])],
    json: { error: { code: codeOf(error) ?? 'failed', message, ...(advice ? { advice } : {}) } },
  };
}

/** What was given can't be used, and nothing was tried. */
const USAGE_CODES = new Set(['invalid_config', 'foreign_stores']);

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError) return EXIT_USAGE;
  // A part of the node finds out, such as that a module lacks an export: from a worker's thread the class is lost.
  if (error instanceof StockadeError && USAGE_CODES.has(error.code)) return EXIT_USAGE;
  return error instanceof Interrupted ? EXIT_INTERRUPTED : EXIT_FAILED;
}

function explainCommander(error: CommanderError): Explanation {
  // Help and version were asked for; help because no command was named has its own code, and exit code 1.
  if (error.exitCode === 0) return { exitCode: EXIT_OK, lines: [], json: undefined };
  const message = error.message.replace(/^error: /, '');
  return { exitCode: EXIT_USAGE, lines: [], json: { error: { code: 'usage', message } } };
}

const MOST_CAUSES = 5;
/** Of Postgres, before the first `migrate`: its own words name a "relation", which says little to who has made none. */
const UNDEFINED_TABLE = '42P01';

/** The message with those of its causes that add something. */
export function describe(error: unknown): string {
  const parts: string[] = [];
  for (let current = error, depth = 0; current != null && depth < MOST_CAUSES; depth++) {
    const text = ownMessage(current);
    if (text !== '' && !parts.some((part) => part.includes(text))) parts.push(text);
    current = (current as { cause?: unknown }).cause;
  }
  return parts.join(': ') || 'failed without saying why';
}

/** A connection that was tried at several addresses fails with an AggregateError that has no message of its own. */
function ownMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message === '' && error instanceof AggregateError) {
    return [...new Set(error.errors.map(ownMessage))].join(', ');
  }
  const { code = '' } = error as { code?: string };
  if (code === UNDEFINED_TABLE) return "this database does not have Stockade's tables, or not all of them";
  const isSql = /^[0-9A-Z]{5}$/.test(code);
  // knex puts the whole statement in front.
  const text = isSql ? error.message.replace(/^.* - /s, '') : error.message;
  return text.trim() || codeOf(error) || error.name;
}

function codeOf(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return typeof code === 'string' ? code : cause === undefined ? undefined : codeOf(cause);
}

const program = invokedAs();
const doctor = `\`${program} doctor\` checks each of them`;
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: `Nothing listens there: start the server, or correct REDIS_URL or DATABASE_URL; ${doctor}.`,
  ENOTFOUND: `That host name is not known: correct REDIS_URL or DATABASE_URL; ${doctor}.`,
  EAI_AGAIN: `That host name can't be looked up now: correct REDIS_URL or DATABASE_URL; ${doctor}.`,
  ECONNRESET: `What listens there hung up: if it asks for TLS, begin REDIS_URL with rediss://; ${doctor}.`,
  ETIMEDOUT: `No answer: is the host right, does it speak TLS if that was asked for, and does a firewall stand in between? ${doctor}.`,
  EADDRINUSE:
    'Something listens on that port already: set PORT or OPS_PORT to another, or to 0 for any free one.',
  EACCES: 'This user may not do that: choose a port from 1024 on, or a DATA_DIR that it may write to.',
  '28P01': 'Correct the user or password in DATABASE_URL.',
  '28000':
    'Postgres does not let this user in so: correct DATABASE_URL (with ?sslmode=verify-full if it asks for encryption), or pg_hba.conf.',
  '3D000': 'Create that database, or correct DATABASE_URL.',
  [UNDEFINED_TABLE]: `Run \`${program} migrate\` with this DATABASE_URL, or correct it if the sales are in another database.`,
  '53300': 'Postgres has no connection left: lower PG_POOL_MAX, or raise its max_connections.',
};

/** What has no cause outside the program, by its own code. */
const ADVICE_BY_OWN_CODE: Readonly<Record<string, string>> = {
  unknown_order: 'Is this the right DATABASE_URL, or the right node (OPS_URL)?',
  unknown_sale: `\`${program} sale list\` has those that there are. If it is missing there: is this the right DATABASE_URL, or the right node (OPS_URL)?`,
};

/** Redis and its client give no codes: these are their words. */
const ADVICE_BY_WORDS: readonly (readonly [RegExp, string])[] = [
  [/NOAUTH|WRONGPASS/, 'Correct the user or password in REDIS_URL.'],
  [
    /NOPERM|user executing the script can't/,
    'The user of REDIS_URL may not do that: give it the rights in deploy/redis-users.acl, and choose a KEY_PREFIX within the keys and channels that are its own.',
  ],
  [
    /Connection is closed/,
    `Redis can't be reached: start it, or correct REDIS_URL (rediss:// if it asks for TLS); ${doctor}.`,
  ],
];

/** Of a connection over TLS that failed, by the code of the error or by its words. */
const TLS_ADVICE: readonly (readonly [RegExp, string])[] = [
  [
    /EPROTO|ERR_SSL_WRONG_VERSION_NUMBER/,
    'What listens there does not speak TLS: correct the port, or begin REDIS_URL with redis://.',
  ],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'The certificate is for another name: reach the server by a name that its certificate has.',
  ],
  [/CERT_HAS_EXPIRED/, 'Give the server a new certificate; and see that the clock of this machine is right.'],
  [
    /does not support SSL/,
    'Set ssl on in that Postgres, or take sslmode out of DATABASE_URL if nobody can listen on the way.',
  ],
  [
    /self-signed certificate|unable to (verify|get)|certificate signature/,
    'No authority that this program trusts has signed the certificate: name the one that has, as sslrootcert=<file> in REDIS_URL (rediss://…?sslrootcert=…) or DATABASE_URL (…?sslmode=verify-full&sslrootcert=…).',
  ],
];

/** What to do about a connection over TLS that failed; `undefined` if it failed for another reason. */
export function tlsAdviceFor(error: unknown): string | undefined {
  const code = codeOf(error instanceof StockadeError ? error.cause : error);
  const said = `${code ?? ''} ${describe(error)}`;
  return TLS_ADVICE.find(([words]) => words.test(said))?.[1];
}

function adviceFor(error: unknown): string | undefined {
  if (error instanceof StockadeError && error.cause === undefined) return ADVICE_BY_OWN_CODE[error.code];
  const code = codeOf(error instanceof StockadeError ? error.cause : error);
  const known = code === undefined ? undefined : ADVICE[code];
  if (known) return known;
  const ofTls = tlsAdviceFor(error);
  if (ofTls) return ofTls;
  return ADVICE_BY_WORDS.find(([words]) => words.test(describe(error)))?.[1];
}
