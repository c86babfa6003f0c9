/** The nodes that the crowd is sent to: the rehearsal's own, on free ports of the loopback, or nodes that run already. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../../config/config.ts';
import { loadConfig } from '../../../config/load-config.ts';
import { Secret } from '../../../config/values/secret.ts';
import { StockadeError } from '../../../engine/errors.ts';
import { isTimeout, withTimeout } from '../../../lib/with-timeout.ts';
import type { NodeMessage } from './node-program.ts';

const PROGRAM = new URL('./node-program.js', import.meta.url);
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 30_000;
const TOKEN_BYTES = 24;
const SAID_CHARACTERS = 2_000;

export interface OwnNode {
  readonly publicUrl: string;
  readonly opsUrl: string;
  readonly opsToken: string;
  readonly backend: string;
  readonly database: string;
  /** Why the process has ended although nobody has ended it; `undefined`: it runs, or it was ended. */
  failure(): string | undefined;
  /** Ends the process at once, as a crash does. */
  kill(): void;
  /** Resolves when the process has ended. */
  stop(): Promise<void>;
}

/** What one of the rehearsal's own nodes has instead of the settings that all have. */
export type NodeSettings = Readonly<Record<string, string>>;

/** @throws StockadeError `node_failed` with the reason if it does not serve in time */
export async function startOwnNode(config: Config, special: NodeSettings = {}): Promise<OwnNode> {
  const opsToken = config.opsToken?.reveal() ?? randomBytes(TOKEN_BYTES).toString('base64url');
  const isEmbedded = config.databaseUrl === undefined;
  const folder = isEmbedded ? await mkdtemp(join(tmpdir(), 'stockade-rehearsal-')) : undefined;
  const settings = { ...settingsOf(config, opsToken), ...(folder && { DATA_DIR: folder }), ...special };
  const node = new NodeProcess(settings, folder);
  try {
    const { publicUrl, opsUrl, backend, database } = await node.ready();
    return {
      ...{ publicUrl, opsUrl, opsToken, backend, database },
      failure: () => node.failure,
      kill: () => node.kill(),
      stop: () => node.stop(),
    };
  } catch (error) {
    await node.stop();
    throw error;
  }
}

type Ready = Extract<NodeMessage, { kind: 'ready' }>;

class NodeProcess {
  readonly #child: ChildProcess;
  readonly #folder: string | undefined;
  readonly #ready: Promise<Ready>;
  /** Resolves with the reason when the process has ended, or could not be started. */
  readonly #ended: Promise<string>;
  #isWanted = false;
  failure: string | undefined;

  /** @param folder of this node alone */
  constructor(settings: NodeJS.ProcessEnv, folder: string | undefined) {
    const child = fork(PROGRAM, folder === undefined ? [] : [folder], {
      env: settings,
      // Ctrl-C at a terminal goes to a whole group: the nodes must outlive it, because the sale is removed through them.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child = child;
    this.#folder = folder;
    let said = '';
    // Missing if the process could not be started.
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-SAID_CHARACTERS);
    });
    let why: string | undefined;
    this.#ready = new Promise((resolve) => {
      child.on('message', (message: NodeMessage) => {
        if (message.kind === 'failed') why = message.why;
        else resolve(message);
      });
    });
    this.#ended = new Promise((resolve) => {
      child.on('error', (error) => {
        if (child.pid === undefined) resolve(error.message);
      });
      child.once('exit', (code, by) =>
        resolve(why ?? (said.trim().split('\n').at(-1) || `it ended with ${code ?? by}`)),
      );
    });
    void this.#ended.then((reason) => {
      if (!this.#isWanted) this.failure = reason;
    });
  }

  /** @throws StockadeError `node_failed` */
  async ready(): Promise<Ready> {
    const failed = (why: string) =>
      new StockadeError('node_failed', `a node of the rehearsal does not start: ${why}`);
    const ended = this.#ended.then((why) => {
      throw failed(why);
    });
    return withTimeout(START_LIMIT_MS, Promise.race([this.#ready, ended])).catch((error) => {
      throw isTimeout(error) ? failed(`it does not serve after ${START_LIMIT_MS / 1_000} s`) : error;
    });
  }

  kill(): void {
    this.#isWanted = true;
    this.#child.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    this.#isWanted = true;
    if (this.#child.connected) this.#child.disconnect();
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), STOP_LIMIT_MS);
    await this.#ended;
    clearTimeout(limit);
    // The node does so itself, unless it was killed.
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** The environment of this process, as a node reads it, but on free ports of the loopback. */
function settingsOf(config: Config, opsToken: string): NodeJS.ProcessEnv {
  const { redisUrl, databaseUrl, keyPrefix, pgPoolMax } = config;
  const { PROBE_PORT: _probe, PROBE_HOST: _host, ...env } = process.env;
  return {
    ...env,
    ...(redisUrl && { REDIS_URL: redisUrl.reveal() }),
    ...(databaseUrl && { DATABASE_URL: databaseUrl.reveal() }),
    KEY_PREFIX: keyPrefix,
    PG_POOL_MAX: String(pgPoolMax),
    BUYER_AUTH: config.buyerAuth,
    ...{ HOST: '127.0.0.1', PORT: '0', OPS_HOST: '127.0.0.1', OPS_PORT: '0', OPS_TOKEN: opsToken },
    ...{ STOP_DELAY_MS: '0', LOG_LEVEL: 'warn' },
  };
}

/** The configuration with which a command reaches the operators of that node. */
export function configOf(node: OwnNode, config: Config): Config {
  const own = loadConfig({ OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken }, {});
  return { ...config, opsUrl: own.opsUrl, opsToken: new Secret(node.opsToken) };
}
