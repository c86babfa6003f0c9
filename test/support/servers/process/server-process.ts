/**
 * One server under test: a temporary directory, and the process that runs in it.
 *
 *   create ──> down ──launch──> up ──end / own death──> down ──launch──> up …
 *                └──────────────────── remove ────────────────────> removed
 *
 * The directory outlives the process, so that a server can come back with its data. It is removed by
 * `remove`, or by the dead man's switch when this process ends without having called it.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { chmod, chown, mkdtemp, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DeadMansSwitch } from './dead-mans-switch.ts';
import { isAtRest } from './process-table.ts';

const startLimitMs = 90_000;
const endLimitMs = 60_000;
/** The pause before it is asked again whether it is ready: at least so long, and so much of the time since its start. */
const minPollMs = 10;
const pollShare = 0.05;
const logTailBytes = 16 * 1024;

/** The account that a server runs as, if not the one of this process. */
export interface Account {
  uid: number;
  gid: number;
}

export interface ServerProcessOptions {
  name: string;
  account?: Account | undefined;
  /** The signal that ends the server at once. */
  lastSignal: 'KILL' | 'QUIT';
}

/** The server did not start; the message contains its log. */
export class ServerStartError extends Error {
  override readonly name = 'ServerStartError';
  readonly portTaken: boolean;

  constructor(what: string, log: string) {
    super(`${what}\n--- its log ---\n${log.trim() || '(empty)'}\n---------------`);
    this.portTaken = /address already in use/i.test(log);
  }
}

export class ServerProcess {
  readonly directory: string;
  readonly #options: ServerProcessOptions;
  readonly #switch: DeadMansSwitch;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #lastEnd = '';
  #logStart = 0;

  private constructor(directory: string, options: ServerProcessOptions) {
    this.directory = directory;
    this.#options = options;
    this.#switch = new DeadMansSwitch(directory, options.lastSignal);
  }

  static async create(options: ServerProcessOptions): Promise<ServerProcess> {
    const directory = await mkdtemp(join(tmpdir(), `${options.name}-`));
    if (options.account) await chown(directory, options.account.uid, options.account.gid);
    await chmod(directory, 0o755);
    return new ServerProcess(directory, options);
  }

  get isUp(): boolean {
    return this.#child !== undefined;
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error(`${this.#options.name} is not running`);
    return this.#child.pid;
  }

  /** How the process last ended: `exit code 0`, or the name of a signal; `''` before the first end. */
  get lastEnd(): string {
    return this.#lastEnd;
  }

  /** Runs a program in the directory to its end, as the server's account. */
  async run(program: string, args: string[]): Promise<void> {
    try {
      await promisify(execFile)(program, args, { ...this.#options.account, cwd: this.directory });
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      throw new ServerStartError(`${program} failed: ${(error as Error).message}`, stdout + stderr);
    }
  }

  /** Starts the server and waits until `ready` says that this very process answers. */
  async launch(
    program: string,
    args: string[],
    ready: (pid: number) => Promise<boolean>,
    env: NodeJS.ProcessEnv = process.env,
  ): Promise<void> {
    if (this.isUp) throw new Error(`${this.#options.name} is running already`);
    await this.#spawn(program, args, env);
    const began = Date.now();
    for (;;) {
      if (!this.#child?.pid) {
        throw new ServerStartError(
          `${program} ended before it was ready (${this.#lastEnd})`,
          await this.log(),
        );
      }
      if (await ready(this.#child.pid)) return;
      if (Date.now() > began + startLimitMs) {
        await this.end('SIGKILL');
        throw new ServerStartError(`${program} was not ready after ${startLimitMs} ms`, await this.log());
      }
      await delay(Math.max(minPollMs, pollShare * (Date.now() - began)));
    }
  }

  /** Sends a signal, unless the server is down. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Stops the process with SIGSTOP, and returns when it no longer runs. */
  async freeze(): Promise<void> {
    const { pid } = this;
    this.signal('SIGSTOP');
    while (!isAtRest(pid)) await delay(1);
  }

  /** Ends the process with this signal, and with SIGKILL if it does not end. Does nothing if it is down. */
  async end(signal: NodeJS.Signals): Promise<void> {
    if (!this.#child) return;
    this.#child.ref();
    this.signal(signal);
    this.signal('SIGCONT');
    const killTimer = setTimeout(() => this.signal('SIGKILL'), endLimitMs);
    await this.#ended;
    clearTimeout(killTimer);
  }

  /** Ends the process if it still runs, and removes the directory. */
  async remove(): Promise<void> {
    await this.end(`SIG${this.#options.lastSignal}`);
    await this.#switch.release();
  }

  /** The end of what the server has logged since it was last started. */
  async log(tailBytes = logTailBytes): Promise<string> {
    const log = await readFile(this.#logPath).catch(() => Buffer.alloc(0));
    return log.subarray(Math.max(this.#logStart, log.length - tailBytes)).toString();
  }

  get #logPath(): string {
    return join(this.directory, 'server.log');
  }

  async #spawn(program: string, args: string[], env: NodeJS.ProcessEnv): Promise<void> {
    this.#logStart = (await stat(this.#logPath).catch(() => ({ size: 0 }))).size;
    // A file and not a pipe: the server goes on even if this process does not read.
    const log = openSync(this.#logPath, 'a');
    try {
      const child = spawn(program, args, {
        ...this.#options.account,
        cwd: this.directory,
        env,
        // A session of its own: Ctrl-C at the terminal ends the tests, and they end their servers.
        detached: true,
        stdio: ['ignore', log, log],
      });
      this.#child = child;
      this.#switch.guard(child.pid);
      child.unref();
      this.#ended = new Promise((resolve) => {
        const gone = (why: string): void => {
          if (this.#child !== child) return;
          this.#child = undefined;
          this.#lastEnd = why;
          this.#switch.guard(undefined);
          resolve();
        };
        child.once('error', (error) => gone(error.message));
        child.once('exit', (code, signal) => gone(signal ?? `exit code ${code}`));
      });
    } finally {
      closeSync(log);
    }
  }
}
