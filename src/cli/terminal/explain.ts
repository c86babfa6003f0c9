/**
 * Explains errors: what happened, with which values, what to do. Exit code 2 says that the command line or the configuration
 * is wrong and that nothing was tried; 1 says that the command failed or found a fault.
 */
import { CommanderError } from 'commander';
import { ConfigError } from '../../config/load-config.ts';
import { InvalidInput, StockadeError } from '../../engine/errors.ts';
import { plainMessage } from '../../operations/operation-faults.ts';
import { invokedAs } from './invoked-as.ts';

export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/** A rehearsal says no-go. */
export const EXIT_NO_GO = 3;
const EXIT_INTERRUPTED = 130;

export type ExitCode =
  | typeof EXIT_OK
  | typeof EXIT_FAILED
  | typeof EXIT_USAGE
  | typeof EXIT_NO_GO
  | typeof EXIT_INTERRUPTED;

/** Ctrl-C during a command that ends by itself: the command neither succeeded nor failed. */
export class Interrupted extends StockadeError {
  /** @param outcome what has become of its work, if that is known */
  constructor(signal: string, outcome?: string) {
    super('interrupted', `interrupted by ${signal}${outcome === undefined ? '' : `: ${outcome}`}`);
  }
}

/** What the command does can't be undone; nobody can be asked, and no flag agrees. */
export class NotConfirmed extends StockadeError {
  constructor(message: string) {
    super('not_confirmed', message);
  }
}

/** The command line is wrong. */
export class UsageError extends StockadeError {
  constructor(message: string) {
    super('usage', message);
  }
}

export interface Explanation {
  readonly exitCode: ExitCode;
  /** For stderr; empty if the message was already printed. */
  readonly lines: readonly string[];
  /** For stdout with `--json`; `undefined` for help and version, which are not errors. */
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
  const message = asInvoked(describe(error));
  const advice = adviceFor(error);
  return {
    exitCode: exitCodeOf(error),
    lines: [`error: ${message}`, ...(advice ? [`  ${advice}`] : [])],
    json: { error: { code: codeOf(error) ?? 'failed', message, ...(advice ? { advice } : {}) } },
  };
}

/** Errors that say that the command line or the configuration is wrong. */
const USAGE_CODES = new Set(['invalid_config', 'foreign_stores', 'no_sessions']);

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError || error instanceof NotConfirmed) return EXIT_USAGE;
  // Such an error may come from a worker thread, which loses its class: a module lacks an export, for example.
  if (error instanceof StockadeError && USAGE_CODES.has(error.code)) return EXIT_USAGE;
  return error instanceof Interrupted ? EXIT_INTERRUPTED : EXIT_FAILED;
}

function explainCommander(error: CommanderError): Explanation {
  // `--help` and `--version` have exit code 0. Help that is shown because no command was named has exit code 1.
  if (error.exitCode === 0) return { exitCode: EXIT_OK, lines: [], json: undefined };
  const message = error.message.replace(/^error: /, '');
  return { exitCode: EXIT_USAGE, lines: [], json: { error: { code: 'usage', message } } };
}

const MAX_CAUSES = 5;
/** Postgres' code before the first `migrate`. Its message speaks of a "relation", which operators may not know. */
const UNDEFINED_TABLE = '42P01';

/** The message of an error, followed by those of its causes that add something. */
export function describe(error: unknown): string {
  const parts: string[] = [];
  for (let current = error, depth = 0; current != null && depth < MAX_CAUSES; depth++) {
    const text = ownMessage(current);
    if (text !== '' && !parts.some((part) => part.includes(text))) parts.push(text);
    current = (current as { cause?: unknown }).cause;
  }
  return parts.join(': ') || 'failed without a message';
}

/** If a connection fails at several addresses, Node throws an AggregateError without a message of its own. */
function ownMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message === '' && error instanceof AggregateError) {
    return [...new Set(error.errors.map(ownMessage))].join(', ');
  }
  const { code = '' } = error as { code?: string };
  if (code === UNDEFINED_TABLE) return "this database does not have Stockade's tables, or not all of them";
  return plainMessage(error).trim() || codeOf(error) || error.name;
}

function codeOf(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return typeof code === 'string' ? code : cause === undefined ? undefined : codeOf(cause);
}

const doctor = '`stockade doctor` checks each of them';
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: `Nothing listens there: start the server, or correct REDIS_URL or DATABASE_URL; ${doctor}.`,
  ENOTFOUND: `That host name is not known: correct REDIS_URL or DATABASE_URL; ${doctor}.`,
  EAI_AGAIN: `That host name can't be looked up now: correct REDIS_URL or DATABASE_URL; ${doctor}.`,
  ECONNRESET: `The server closed the connection: if it requires TLS, begin REDIS_URL with rediss://; ${doctor}.`,
  ETIMEDOUT: `No answer: is the host right, does the server speak TLS if the URL asks for it, is there a firewall? ${doctor}.`,
  EADDRINUSE:
    'Something listens on that port already: set PORT, OPS_PORT or PROBE_PORT to another, or to 0 for any free one.',
  '28P01': 'Correct the user or password in DATABASE_URL.',
  '28000':
    'Postgres does not let this user in: correct DATABASE_URL (with ?sslmode=verify-full if Postgres requires encryption), or pg_hba.conf.',
  '3D000': 'Create that database, or correct DATABASE_URL.',
  [UNDEFINED_TABLE]:
    'Run `stockade migrate` with this DATABASE_URL, or correct it if the sales are in another database.',
  EISDIR: 'That is a folder: name a file in it.',
  ENOENT: 'There is no such file or folder: correct the path.',
  '25006':
    'This Postgres takes no writes: point DATABASE_URL at the primary, or set default_transaction_read_only off.',
  '53100': 'The disk of Postgres is full: make room there.',
  '53300': 'Postgres has no connection left: lower PG_POOL_MAX, or raise its max_connections.',
};

/** Advice by the codes of Stockade's own errors, for those without a cause. */
const ADVICE_BY_OWN_CODE: Readonly<Record<string, string>> = {
  orders_differ:
    '`stockade sale delete <sale> --with-orders --export <new file>` writes its orders to a file, and then deletes both.',
  unknown_order: 'Is this the right DATABASE_URL, or the right node (OPS_URL)?',
  unknown_sale:
    '`stockade sale list --all --archived include` lists all sales. If it is missing there: is this the right DATABASE_URL, or the right node (OPS_URL)?',
};

/** Advice by the message: errors of Redis and of its client have no codes, and a code of Postgres may mean several things. */
const ADVICE_BY_WORDS: readonly (readonly [RegExp, string])[] = [
  [/NOAUTH|WRONGPASS/, 'Correct the user or password in REDIS_URL.'],
  [
    /NOPERM|user executing the script can't/,
    'The user of REDIS_URL may not do that: give it the rights in deploy/redis-users.acl, and choose a KEY_PREFIX that these rights cover.',
  ],
  [/MISCONF/, "Redis can't write its file, so it takes no writes: make room on the disk of Redis."],
  [
    /OOM command not allowed/,
    'The memory of Redis is full: raise its maxmemory, or archive sales that are over.',
  ],
  [
    // An error of Stockade that names the command needs no advice.
    /^(?!.*migrate --grant-to).*permission denied for (table|function)/s,
    'The user of DATABASE_URL lacks a right: run `stockade migrate --grant-to <that user>` as the owner of the tables.',
  ],
  [
    /Connection is closed/,
    `Redis can't be reached: start it, or correct REDIS_URL (rediss:// if it asks for TLS); ${doctor}.`,
  ],
  [
    /Socket timeout|Command timed out/,
    `The connection is open, but Redis does not answer: look at its log and at the load of its machine; ${doctor}.`,
  ],
  [/timeout expired/, `No answer: is the host right, does Postgres hang, is there a firewall? ${doctor}.`],
  [
    /role ".*" does not exist/,
    'Create that role first (deploy/postgres-roles.sql makes two), or correct its name.',
  ],
];

/** Advice for failed TLS connections, by the code or the message of the error. */
const TLS_ADVICE: readonly (readonly [RegExp, string])[] = [
  [
    /EPROTO|ERR_SSL_WRONG_VERSION_NUMBER/,
    'The server there does not speak TLS: correct the port, or begin REDIS_URL with redis://.',
  ],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'The certificate is for another name: connect to the server by a name in its certificate.',
  ],
  [
    /CERT_HAS_EXPIRED/,
    'Give the server a new certificate, or correct the clock of this machine if it is wrong.',
  ],
  [
    /does not support SSL/,
    'Set ssl on in that Postgres, or remove sslmode from DATABASE_URL if nobody can read the traffic.',
  ],
  [
    /self-signed certificate|unable to (verify|get)|certificate signature/,
    'The certificate is not signed by an authority that this program trusts: name the authority that signed it, as sslrootcert=<file> in REDIS_URL (rediss://…?sslrootcert=…) or DATABASE_URL (…?sslmode=verify-full&sslrootcert=…).',
  ],
];

/** What to do about a failed TLS connection; `undefined` if the error has another cause. */
export function tlsAdviceFor(error: unknown): string | undefined {
  const code = codeOf(error instanceof StockadeError ? error.cause : error);
  const text = `${code ?? ''} ${describe(error)}`;
  return TLS_ADVICE.find(([words]) => words.test(text))?.[1];
}

function adviceFor(error: unknown): string | undefined {
  const advice = adviceByTable(error);
  return advice === undefined ? undefined : asInvoked(advice);
}

/** Commands in a text, called as this program was. */
const asInvoked = (text: string): string => text.replaceAll('`stockade ', () => `\`${invokedAs()} `);

/** The system's error names its call: a port, a socket of a server, or a file. */
function adviceForDenied(text: string): string {
  if (/\blisten EACCES\b/.test(text))
    return 'This user may not listen on that port: choose one of at least 1024.';
  if (/\bconnect EACCES\b/.test(text))
    return `This user may not connect there: look at the rights of the socket, or at the firewall; ${doctor}.`;
  return 'This user may not use that file or folder: change its owner or its rights, or name another one.';
}

function adviceByTable(error: unknown): string | undefined {
  if (error instanceof StockadeError && error.cause === undefined) return ADVICE_BY_OWN_CODE[error.code];
  const code = codeOf(error instanceof StockadeError ? error.cause : error);
  if (code === 'EACCES') return adviceForDenied(describe(error));
  const known = code === undefined ? undefined : ADVICE[code];
  if (known) return known;
  const tlsAdvice = tlsAdviceFor(error);
  if (tlsAdvice) return tlsAdvice;
  return adviceByWords(describe(error));
}

/** What to do about an error that is known by its message alone. */
export function adviceByWords(message: string): string | undefined {
  return ADVICE_BY_WORDS.find(([words]) => words.test(message))?.[1];
}
