/** The machine that the figures were measured on. */
import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { findServer, type ServerName } from '../../scripts/servers.mjs';

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly node: string;
  readonly redis: string;
  readonly postgres: string;
  readonly wrk?: string;
  readonly zookeeper?: string;
}

/** `wrk`, `zookeeper`: whether the bench uses them. All benches use Redis and Postgres. */
export function describeMachine({ wrk, zookeeper }: { wrk: boolean; zookeeper?: boolean }): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    node: process.versions.node,
    redis: versionOf('redis', 'redis-server', '--version', /v=(\S+)/),
    postgres: versionOf('postgres', 'postgres', '--version', /\) (\S+)/),
    ...(wrk && { wrk: versionOf('wrk', 'wrk', '-v', /^wrk (\S+)/) }),
    ...(zookeeper && { zookeeper: versionOf('zookeeper', 'zkServer.sh', 'version', /version (\S+)/) }),
  };
}

export function machineText({ cores, cpu, node, redis, postgres, wrk, zookeeper }: Machine): string {
  const programs = [`Node ${node}`, `Redis ${redis}`, `Postgres ${postgres}`];
  if (wrk !== undefined) programs.push(`wrk ${wrk}`);
  if (zookeeper !== undefined) programs.push(`ZooKeeper ${zookeeper}`);
  return `${cores} cores, ${cpu}; ${programs.join(', ')}`;
}

function versionOf(server: ServerName, program: string, flag: string, pattern: RegExp): string {
  const folder = findServer(server);
  if (!folder) return 'not found';
  // wrk prints its version and then fails.
  const { stdout, stderr } = spawnSync(join(folder, program), [flag], { encoding: 'utf8' });
  return pattern.exec(`${stdout}${stderr}`)?.[1] ?? 'unknown';
}
