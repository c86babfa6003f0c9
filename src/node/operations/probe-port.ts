import type { Config } from '../../config/config.ts';
import { httpUrl } from '../../config/values/hosts.ts';
import { type ProbeHost, serveProbes } from '../../http/ops/probe-server.ts';
import type { Teardown } from '../../lib/teardown.ts';
import { chooseHttpServer } from '../process/http-server.ts';
import type { Log } from '../process/log.ts';
import { onOwnPort } from '../process/ports.ts';
import type { Stage } from '../process/stage.ts';

/**
 * Opens the probe port, if one is wanted. It is opened before everything else and closed after everything else, so that it
 * answers as long as the process lives.
 * @returns its address @throws StockadeError `port_in_use`
 */
export async function openProbePort(
  config: Config,
  log: Log,
  stage: Stage,
  teardown: Teardown,
): Promise<string | undefined> {
  if (config.probePort === undefined) return undefined;
  const host: ProbeHost = {
    isStopping: () => stage.isStopping,
    notReady: () => stage.notReady(),
    fault: (error) => log.error({ err: error }, 'a health check failed'),
  };
  const { open } = await chooseHttpServer(config.httpServer);
  const listener = await onOwnPort(config.probeHost, config.probePort, (port) =>
    serveProbes(host, open, { host: config.probeHost, port, isShared: false }),
  );
  teardown.add(() => listener.drain(0));
  return httpUrl(config.probeHost, listener.port);
}
