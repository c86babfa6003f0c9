import type { Config } from '../../config/config.ts';
import { opsToken } from '../../config/ops-token.ts';
import { httpUrl } from '../../config/values/hosts.ts';
import { type OpsHost, serveOps } from '../../http/ops/ops-server.ts';
import { chooseHttpServer } from '../process/http-server.ts';
import type { Log } from '../process/log.ts';
import { onOwnPort } from '../process/ports.ts';

export interface OpsPort {
  readonly url: string;
  readonly token: string;
  /** Requests that are not answered yet. */
  underWay(): number;
  /** Accepts no new connections. */
  stopListening(): Promise<void>;
  /** Answers the requests under way, for at most SHUTDOWN_GRACE_MS; then closes all connections. */
  stop(): Promise<void>;
}

/** @throws StockadeError `port_in_use`, OpsTokenFault */
export async function openOpsPort(
  config: Config,
  log: Log,
  host: Omit<OpsHost, 'token' | 'fault'>,
): Promise<OpsPort> {
  const token = opsToken(config);
  const fault = (error: unknown) => log.error({ err: error }, 'an operation failed');
  const { open } = await chooseHttpServer(config.httpServer);
  const listener = await onOwnPort(config.opsHost, config.opsPort, (port) =>
    serveOps({ ...host, token, fault }, open, { host: config.opsHost, port, isShared: false }),
  );
  return {
    url: httpUrl(config.opsHost, listener.port),
    token,
    underWay: listener.underWay,
    stopListening: async () => listener.stopListening(),
    stop: () => listener.drain(config.shutdownGraceMs),
  };
}
