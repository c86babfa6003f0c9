/** The nodes that the crowd is sent to: the rehearsal's own, on free ports of the loopback, or nodes that run already. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../../config/config.ts';
import { loadConfig } from '../../../config/load-config.ts';
import { Secret } from '../../../config/values/secret.ts';
import { StockadeError } from '../../../engine/errors.ts';
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
  const child = fork(PROGRAM, folder === undefined ? [] : [folder], {
    env: {
      ...settingsOf(config, opsToken),
      ...(folder && { DATA_DIR: folder }),
      ...special,
    },
    // Ctrl-C at a terminal goes to a whole group: the nodes must outlive it, because the sale is removed through them.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-SAID_CHARACTERS);
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = () => stopped(child, ended);
  try {
    const place = await readyMessage(child, () => said);
    return { ...place, opsToken, kill: () => child.kill('SIGKILL'), stop };
  } catch (error) {
    await stop();
    throw error;
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

type Ready = Extract<NodeMessage, { kind: 'ready' }>;

async function readyMessage(child: ChildProcess, said: () => string): Promise<Omit<Ready, 'kind'>> {
  const signal = AbortSignal.timeout(START_LIMIT_MS);
  const failed = (why: string) =>
    new StockadeError('node_failed', `a node of the rehearsal does not start: ${why}`);
  const message = once(child, 'message', { signal }).then(([told]) => told as NodeMessage);
  const exit = once(child, 'exit', { signal }).then(([code, by]): NodeMessage => {
    return { kind: 'failed', why: said().trim().split('\n').at(-1) || `it ended with ${code ?? by}` };
  });
  const first = await Promise.race([message, exit]).catch(() => {
    throw failed(`it does not serve after ${START_LIMIT_MS / 1_000} s`);
  });
  exit.catch(() => {});
  message.catch(() => {});
  if (first.kind === 'failed') throw failed(first.why);
  const { kind: _, ...place } = first;
  return place;
}

async function stopped(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.connected) child.disconnect();
  const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await ended;
  clearTimeout(limit);
}

/** The configuration with which a command reaches the operators of that node. */
export function configOf(node: OwnNode, config: Config): Config {
  const own = loadConfig({ OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken }, {});
  return { ...config, opsUrl: own.opsUrl, opsToken: new Secret(node.opsToken) };
}
