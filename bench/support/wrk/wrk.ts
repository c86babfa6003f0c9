import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findServer } from '../../../scripts/servers.mjs';
import { BenchFailure } from '../failure.ts';
import { parseWrkOutput, type WrkReport } from './wrk-output.ts';

export interface WrkRun {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** A Lua script, and the arguments of its `init`. */
  readonly script: string;
  readonly scriptArgs: readonly string[];
}

/** wrk's default, set explicitly: an answer that takes longer counts as an error. */
const ANSWER_TIMEOUT_S = 2;
/** Additional time for wrk to begin and to end. */
const GRACE_S = 30;
/** Files that a process has open in addition to connections. */
const SPARE_FILES = 128;

/**
 * One thread, so that wrk takes at most one core. A closed loop: each connection sends its next request when it has
 * an answer.
 */
export async function runWrk({ url, connections, seconds, script, scriptArgs }: WrkRun): Promise<WrkReport> {
  const folder = findServer('wrk');
  if (!folder) throw new BenchFailure('wrk not found: run `node scripts/ensure-servers.mjs wrk`');
  const load = ['--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`];
  const args = [...load, '--latency', '--timeout', `${ANSWER_TIMEOUT_S}s`, '--script', script, url];
  const { stdout } = await promisify(execFile)(join(folder, 'wrk'), [...args, '--', ...scriptArgs], {
    timeout: (seconds + GRACE_S) * 1_000,
  });
  return parseWrkOutput(stdout);
}

/** @throws BenchFailure if the limit of open files is too low for so many connections */
export function assertEnoughFiles(connections: number): void {
  // Node has raised its own soft limit to the hard one, which child processes inherit.
  const limit = spawnSync('/bin/sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).stdout.trim();
  const needed = connections + SPARE_FILES;
  if (limit === 'unlimited' || Number(limit) >= needed) return;
  throw new BenchFailure(
    `${connections} connections need ${needed} open files in one process, and the limit is ${limit}: ` +
      `run \`ulimit -n ${needed}\` first, or use fewer --connections`,
  );
}
