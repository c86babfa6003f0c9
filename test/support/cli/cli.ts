/**
 * Runs the command line with no environment variables but the given ones: either dist/cli/main.js in a process of its own, as
 * users run it, or a call within the test's process, which takes a tenth of the time.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { nodeFlags } from '../nodes/build.ts';
import { until } from '../until.ts';

/** The built program. */
export const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const LIMIT_MS = 180_000;

export interface CliResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Calls a command that ends by itself, needs no signal and starts no worker threads, because threads need the built JavaScript.
 * (A command on PGlite starts one.) Stdout, stderr, the working directory and `process.argv` belong to the whole process, so
 * commands run one after another.
 */
export function callCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const called = last.then(() => callAlone(args, options));
  last = called.catch(() => {});
  return called;
}

async function callAlone(args: readonly string[], { env = {}, cwd }: CliOptions): Promise<CliResult> {
  const before = {
    argv: process.argv,
    cwd: process.cwd(),
    out: process.stdout.write,
    err: process.stderr.write,
  };
  const written = { stdout: '', stderr: '' };
  const capture = (stream: keyof typeof written) => (text: unknown, done?: unknown) => {
    written[stream] += text;
    if (typeof done === 'function') done();
    return true;
  };
  process.stdout.write = capture('stdout');
  process.stderr.write = capture('stderr');
  process.argv = [process.execPath, MAIN, ...args];
  if (cwd !== undefined) process.chdir(cwd);
  try {
    const { runCommandLine } = await import('../../../src/cli/command-line.ts');
    const exitCode = await runCommandLine(process.argv, { PATH: process.env.PATH, ...env });
    return { exitCode, signal: null, ...written };
  } finally {
    process.argv = before.argv;
    process.chdir(before.cwd);
    process.stdout.write = before.out;
    process.stderr.write = before.err;
  }
}

/** Runs a command that ends by itself, in a process of its own. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  await using cli = new RunningCli(args, options);
  return await cli.ended;
}

/** A running command. Disposing kills it, if it has not ended. */
export class RunningCli implements AsyncDisposable {
  readonly ended: Promise<CliResult>;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';

  constructor(args: readonly string[], { env = {}, cwd }: CliOptions = {}) {
    const child = spawn(process.execPath, [...nodeFlags(args[0], env), MAIN, ...args], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
      ...(cwd === undefined ? {} : { cwd }),
    });
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stdout += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stderr += chunk;
    });
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exitCode, signal) =>
        resolve({ exitCode, signal, stdout: this.#stdout, stderr: this.#stderr }),
      );
    });
    this.#child = child;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Waits until the command prints this on stdout or stderr. @throws if it ends before */
  async said(words: RegExp): Promise<RegExpExecArray> {
    const look = () => words.exec(this.#stdout) ?? words.exec(this.#stderr) ?? (this.#hasEnded && 'ended');
    const found = await until(look, { what: `the command says ${words}`, timeoutMs: LIMIT_MS });
    if (typeof found === 'object') return found;
    throw new Error(`ended without saying ${words}:\n${this.#stdout}\n${this.#stderr}`);
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  signal(...signals: readonly NodeJS.Signals[]): void {
    for (const signal of signals) this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended.catch(() => {});
  }
}
