/**
 * A node under test: a process `stockade serve` with ports and a directory of its own.
 *
 * The directory outlives the process, so a node can be stopped or killed and come back with its data. Disposing kills the process
 * if it still runs, and removes the directory.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { OpsClient } from '../../../src/cli/command/ops-client.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import { LONG_TIMEOUTS_ENV } from '../long-timeouts.ts';
import { ServerProcess } from '../servers/process/server-process.ts';
import { mainProgram, nodeFlags } from './build.ts';

/** Much more than a node logs in a test, even at level trace. */
const MAX_LOG_BYTES = 64 * 1024 * 1024;

export interface TestNodeOptions {
  redisUrl?: string;
  databaseUrl?: string;
  keyPrefix?: string;
  /** The initial data: a copy of this folder, which another node has left. */
  dataFrom?: string;
  /** The program of an earlier release (releases.ts), instead of this tree's. */
  program?: string;
  /** A program and its arguments that replaces itself with the node, whose command line follows. */
  launcher?: readonly string[];
  /** Uses the product's own deadlines, instead of the longer ones for tests. */
  asShipped?: boolean;
  /** More settings, which override those of the test harness. */
  env?: Record<string, string>;
}

/** The line that a node prints when it serves. */
interface Place {
  readonly ready: true;
  readonly pid: number;
  readonly publicUrl: string;
  readonly opsUrl: string;
  /** If `PROBE_PORT` is set. */
  readonly probeUrl?: string;
  readonly backend: string;
  readonly database: string;
}

export interface Answer {
  readonly status: number;
  /** The body's `code` or, in an order, its `status`; `''` if it has neither. */
  readonly code: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every kind.
  readonly body: any;
  readonly headers: Readonly<Record<string, string>>;
}

export interface RequestSpec {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'HEAD' | 'OPTIONS';
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

export interface BuySpec {
  readonly quantity?: number;
  /** `Idempotency-Key`. */
  readonly key?: string;
  readonly prefer?: string;
  readonly headers?: Record<string, string>;
}

export class TestNode implements AsyncDisposable {
  readonly opsToken = randomBytes(18).toString('base64url');
  readonly #process: ServerProcess;
  readonly #env: Record<string, string>;
  readonly #program: string;
  readonly #launcher: readonly string[];
  #place: Place | undefined;
  #ops: OpsClient | undefined;
  #agent = new Agent();

  constructor(process: ServerProcess, options: TestNodeOptions) {
    this.#process = process;
    this.#program = options.program ?? mainProgram;
    this.#launcher = options.launcher ?? [];
    this.#env = {
      ...processEnv(),
      HOST: '127.0.0.1',
      PORT: '0',
      OPS_PORT: '0',
      OPS_TOKEN: this.opsToken,
      DATA_DIR: this.dataDir,
      ...(options.redisUrl !== undefined && { REDIS_URL: options.redisUrl }),
      ...(options.databaseUrl !== undefined && { DATABASE_URL: options.databaseUrl }),
      ...(options.keyPrefix !== undefined && { KEY_PREFIX: options.keyPrefix }),
      // Each further one loads the program again.
      WORKERS: '1',
      ...(!options.asShipped && LONG_TIMEOUTS_ENV),
      ...options.env,
    };
  }

  get publicUrl(): string {
    return this.#running.publicUrl;
  }

  get opsUrl(): string {
    return this.#running.opsUrl;
  }

  get probeUrl(): string {
    const { probeUrl } = this.#running;
    if (probeUrl === undefined) throw new Error('the node has no probe port: set PROBE_PORT');
    return probeUrl;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** `DATA_DIR`, unless `env` says otherwise. */
  get dataDir(): string {
    return join(this.#process.directory, 'data');
  }

  get isUp(): boolean {
    return this.#process.isUp;
  }

  /** `exit code 0`, or the signal that has ended it. */
  get lastEnd(): string {
    return this.#process.lastEnd;
  }

  /** The ops port, for operators' work. */
  get ops(): OpsClient {
    this.#ops ??= new OpsClient(loadConfig({ OPS_URL: this.opsUrl, OPS_TOKEN: this.opsToken }, {}));
    return this.#ops;
  }

  /** Starts the node in its directory, which may have data; its ports are new. `env` holds from now on. */
  async start(env: Record<string, string> = {}): Promise<void> {
    Object.assign(this.#env, env);
    const flags = nodeFlags('serve', this.#env);
    const node = [process.execPath, ...flags, this.#program, 'serve', '--json'];
    const [program, ...args] = [...this.#launcher, ...node];
    await this.#process.launch(program!, args, (pid) => this.#isReady(pid), this.#env);
  }

  /** Stops the node with SIGTERM. @throws with the log, if it does not end with exit code 0 */
  async stop(): Promise<void> {
    if (!this.isUp) return;
    await this.#process.end('SIGTERM');
    await this.#disconnect();
    if (this.lastEnd !== 'exit code 0') {
      throw new Error(`the node ended with ${this.lastEnd}\n--- its log ---\n${await this.#process.log()}`);
    }
  }

  /** Sends a signal, and does not wait. */
  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal);
  }

  async kill(): Promise<void> {
    await this.#process.end('SIGKILL');
    await this.#disconnect();
  }

  /** Everything that the node has written since its last start: one JSON line when it is ready, and its log. */
  log(): Promise<string> {
    return this.#process.log(MAX_LOG_BYTES);
  }

  buy(
    saleId: string,
    buyerId: string,
    { quantity, key, prefer, headers }: BuySpec = {},
    note?: object,
  ): Promise<Answer> {
    return this.request(`/v1/sales/${saleId}/orders`, {
      method: 'POST',
      headers: {
        'x-buyer-id': buyerId,
        ...(key !== undefined && { 'idempotency-key': key }),
        ...(prefer !== undefined && { prefer }),
        ...headers,
      },
      ...((quantity !== undefined || note) && { body: JSON.stringify({ quantity, ...note }) }),
    });
  }

  /** A request to the public port. */
  request(path: string, spec: RequestSpec = {}): Promise<Answer> {
    return this.#ask(this.publicUrl, path, spec);
  }

  /** A request to the ops port; with the token, unless `headers` say otherwise. */
  opsRequest(path: string, spec: RequestSpec = {}): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.opsToken}`, ...spec.headers };
    return this.#ask(this.opsUrl, path, { ...spec, headers });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.remove();
    await this.#disconnect();
  }

  get #running(): Place {
    if (!this.#place) throw new Error('the node was not started');
    return this.#place;
  }

  async #isReady(pid: number): Promise<boolean> {
    const lines = (await this.log()).split('\n').slice(0, -1);
    const readyLine = lines.find((line) => line.startsWith('{"ready":true'));
    if (readyLine === undefined) return false;
    this.#place = JSON.parse(readyLine) as Place;
    if (this.#place.pid !== pid) throw new Error(`process ${pid} says that it is ${this.#place.pid}`);
    return true;
  }

  async #ask(origin: string, path: string, { method = 'GET', headers, body }: RequestSpec): Promise<Answer> {
    const answer = await request(`${origin}${path}`, {
      dispatcher: this.#agent,
      method,
      headers: headers ?? {},
      body: body ?? null,
    });
    return readAnswer(answer.statusCode, answer.headers as Record<string, string>, await answer.body.text());
  }

  async #disconnect(): Promise<void> {
    await Promise.all([this.#agent.destroy(), this.#ops?.disconnect()]);
    this.#ops = undefined;
    this.#agent = new Agent();
  }
}

/** Starts a node, and resolves when it serves. */
export async function startTestNode(options: TestNodeOptions = {}): Promise<TestNode> {
  const process = await ServerProcess.create({ name: 'stockade', lastSignal: 'KILL' });
  const node = new TestNode(process, options);
  try {
    // With all permissions: a node does not use a data folder that others could read.
    if (options.dataFrom) await process.run('cp', ['-a', options.dataFrom, node.dataDir]);
    await node.start();
    return node;
  } catch (error) {
    await node[Symbol.asyncDispose]();
    throw error;
  }
}

/** An answer in the form that tests look at. */
export function readAnswer(status: number, headers: Record<string, string>, text: string): Answer {
  const isJson = /^application\/(problem\+)?json/.test(headers['content-type'] ?? '');
  const body = isJson && text !== '' ? JSON.parse(text) : text;
  return { status, code: body?.code ?? body?.status ?? '', body, headers };
}

/** Variables that any program needs. Of those that configure a node, only the HTTP server under test is passed on. */
function processEnv(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'HTTP_SERVER'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
