import { createServer } from 'node:net';
import { request } from 'undici';
import type { Config } from '../../config/config.ts';
import { httpUrl, isLoopback, reachableHost } from '../../config/values/hosts.ts';
import { describe } from '../terminal/explain.ts';
import { type Check, checksOf } from './check.ts';

const { ok, warn, fail } = checksOf('ports');
const PROBE_TIMEOUT_MS = 1_000;

type PortSetting = 'PORT' | 'OPS_PORT' | 'PROBE_PORT';
const HOSTS = { PORT: 'HOST', OPS_PORT: 'OPS_HOST', PROBE_PORT: 'PROBE_HOST' } as const;

export async function checkPorts(config: Config): Promise<Check[]> {
  const { host, port, opsHost, opsPort, probeHost, probePort } = config;
  const nodeRuns = opsPort !== 0 && (await answersHealth(httpUrl(reachableHost(opsHost), opsPort)));
  return [
    await checkPort('PORT', host, port, nodeRuns),
    await checkPort('OPS_PORT', opsHost, opsPort, nodeRuns),
    ...(probePort === undefined ? [] : [await checkPort('PROBE_PORT', probeHost, probePort, nodeRuns)]),
    opsReach(opsHost),
  ];
}

/** The ops port speaks plain HTTP, and its token allows everything that operators may do. */
export function opsReach(opsHost: string): Check {
  if (isLoopback(opsHost)) return ok('OPS_HOST', `${opsHost}: only this machine reaches the ops port`);
  return warn(
    'OPS_HOST',
    `${opsHost}: other machines may reach the ops port, which has no TLS`,
    'Set OPS_HOST to 127.0.0.1 and connect through a tunnel or a proxy with TLS; or let a firewall admit operators ' +
      'only. Anyone who reads the OPS_TOKEN on the network can change and close sales.',
  );
}

async function checkPort(
  setting: PortSetting,
  host: string,
  port: number,
  nodeRuns: boolean,
): Promise<Check> {
  if (port === 0) return ok(setting, `0: any free port on ${host}`);
  const error = await tryListen(host, port);
  if (!error) return ok(setting, `${port} is free on ${host}`);
  if (error.code === 'EADDRINUSE' && nodeRuns)
    return ok(setting, `${port} on ${host} is in use by a running node`);
  return fail(setting, `${port} on ${host}: ${describe(error)}`, adviceFor(setting, error.code));
}

function adviceFor(setting: PortSetting, code: string | undefined): string {
  if (code === 'EADDRINUSE')
    return `Stop the program that listens there, or set ${setting} to another port (0: any free one).`;
  if (code === 'EACCES') return `This user may not listen there: set ${setting} to 1024 or above.`;
  return `Set ${HOSTS[setting]} to an address of this machine.`;
}

function tryListen(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', resolve);
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)));
  });
}

async function answersHealth(url: string): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const { statusCode, body } = await request(`${url}/healthz`, { signal });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  }
}
