import { pino } from 'pino';
import type { Config } from '../../config/config.ts';

type Write = (first: object | string, message?: string) => void;

/** What the parts of a process write to: pino's Logger, or one of the program that Stockade runs in. */
export interface Log {
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
}

/** Wherever they turn up in what is logged: a configuration, a request's headers, an error's context. */
const REDACTED = [
  'token',
  'secret',
  'password',
  'authorization',
  'opsToken',
  'jwtSecret',
  'headers.authorization',
];

/** Errors of Redis carry their command; the arguments of AUTH are the password. */
function describeError(error: Error): object {
  const described = pino.stdSerializers.err(error) as pino.SerializedError & { command?: { name?: string } };
  if (described?.command) described.command = { name: String(described.command.name) };
  return described;
}

const toStderr = new WeakSet<Log>();

/** Whether worker threads, which each write for themselves, must keep off stdout too. */
export function writesToStderr(log: Log): boolean {
  return toStderr.has(log);
}

/** JSON lines. Commands other than `serve` keep stdout for their result and log to stderr. */
export function createLog(config: Pick<Config, 'logLevel'>, options: { stderr?: boolean } = {}): pino.Logger {
  const log = pino(
    {
      level: config.logLevel,
      serializers: { err: describeError },
      redact: { paths: REDACTED.flatMap((name) => [name, `*.${name}`]), censor: '(hidden)' },
    },
    pino.destination({ dest: options.stderr ? 2 : 1, sync: true }),
  );
  if (options.stderr) toStderr.add(log);
  return log;
}
