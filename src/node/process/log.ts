import { pino } from 'pino';
import type { Config } from '../../config/config.ts';
import { logOutput } from './log-output.ts';

type Write = (first: object | string, message?: string) => void;

/** What the parts of a process write to: pino's Logger, or the log of the program that Stockade is embedded in. */
export interface Log {
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
}

/** Fields that are hidden at the top of a logged object and one level below: in a configuration, headers, an error's context. */
const REDACTED = [
  'token',
  'secret',
  'password',
  'authorization',
  'opsToken',
  'jwtSecret',
  'headers.authorization',
];

/** Keeps only the name of the command in an error of Redis, because the arguments of AUTH contain the password. */
export function hideArguments(error: { command?: { name?: string } } | undefined): void {
  if (error?.command) error.command = { name: String(error.command.name) };
}

function describeError(error: Error): object {
  const described = pino.stdSerializers.err(error);
  hideArguments(described as { command?: { name?: string } });
  return described;
}

const toStderr = new WeakSet<Log>();

/** Whether the log goes to stderr. Each worker thread has a log of its own, which must go to the same place. */
export function writesToStderr(log: Log): boolean {
  return toStderr.has(log);
}

/** A log of JSON lines on stdout, or on stderr for commands that print their result on stdout. */
export function createLog(config: Pick<Config, 'logLevel'>, options: { stderr?: boolean } = {}): pino.Logger {
  const output = logOutput(options.stderr ? 2 : 1, (lines) =>
    log.warn({ lines }, 'lines of the log were lost: it could not be written'),
  );
  const log: pino.Logger = pino(
    {
      level: config.logLevel,
      serializers: { err: describeError },
      redact: { paths: REDACTED.flatMap((name) => [name, `*.${name}`]), censor: '(hidden)' },
    },
    output,
  );
  if (options.stderr) toStderr.add(log);
  return log;
}
