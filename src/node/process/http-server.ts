/**
 * Chooses the HTTP server of this process. uWebSockets.js has binaries for some versions of Node on some systems only. Where
 * none loads, `node:http` serves. It keeps the same promises (http/server/http-server.ts), but is slower.
 */
import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/load-config.ts';
import type { OpenHttpServer } from '../../http/server/http-server.ts';
import { type Uws, uwsServer } from '../../http/server/uws/uws-server.ts';
import { importModule } from './import-module.ts';
import type { Log } from './log.ts';
import { canShareNodePorts } from './ports.ts';

/** Compared with uWebSockets.js, measured in one run: bench/results/http.md. */
export const COST_OF_NODE_HTTP =
  'a refused purchase costs about 3 times the processor time, a committed one 1.6 times';

export interface ChosenServer {
  readonly kind: 'uws' | 'node';
  readonly open: OpenHttpServer;
  /** Why `auto` chose `node:http`. */
  readonly why?: string;
}

const loadUws = async () => uwsServer(await importModule<Uws>('uWebSockets.js'));
const loadNode = async () => (await import('../../http/server/node-http/node-server.ts')).openNodeServer;

/** @throws ConfigError if uWebSockets.js is wanted, and no binary of it loads */
export async function chooseHttpServer(
  wanted: Config['httpServer'],
  load: () => Promise<OpenHttpServer> = loadUws,
): Promise<ChosenServer> {
  if (wanted === 'node') return { kind: 'node', open: await loadNode() };
  try {
    return { kind: 'uws', open: await load() };
  } catch (error) {
    const why = whyNotLoaded(error);
    if (wanted === 'auto') return { kind: 'node', open: await loadNode(), why };
    const problem = `is uws, but ${why}: unset it to serve with node:http`;
    throw new ConfigError([{ field: 'HTTP_SERVER', problem }]);
  }
}

function whyNotLoaded(error: unknown): string {
  const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
  if (isMissing) return 'uWebSockets.js is not installed';
  return `no binary of uWebSockets.js loads on ${process.platform} ${process.arch} with Node ${process.versions.node}`;
}

/** Logs when `node:http` serves buyers, why, and what that costs. @returns how many workers can serve */
export async function workersPossible(
  { httpServer, workers, host }: Pick<Config, 'httpServer' | 'workers' | 'host'>,
  log: Log,
): Promise<number> {
  const { kind, why } = await chooseHttpServer(httpServer);
  if (why !== undefined) log.info(`node:http serves, because ${why}: ${COST_OF_NODE_HTTP}`);
  if (kind === 'uws' || workers === 1 || (await canShareNodePorts(host))) return workers;
  log.warn(
    { workers, node: process.versions.node },
    'only one worker serves buyers: with node:http, threads can share a port only on Linux, from Node 22.12 and 23.1',
  );
  return 1;
}
