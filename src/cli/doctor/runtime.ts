import { accessSync, constants, mkdirSync, rmdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { whyNotOurs, wideMode } from '../../config/private-folder.ts';
import { connectionsWithin, openFilesLimit } from '../../node/process/open-files.ts';
import { describe } from '../terminal/explain.ts';
import { number } from '../terminal/output.ts';
import { type Check, checksOf } from './check.ts';

const { ok, warn, fail } = checksOf('runtime');
/** The first with `crypto.hash`, which every request with a token calls. */
const LEAST_NODE = { major: 20, minor: 12 };
const INSTALL = `Install Node.js ${LEAST_NODE.major} (from ${LEAST_NODE.major}.${LEAST_NODE.minor}) or 22.`;
/** uWebSockets.js comes compiled for each version of Node; the one this project installs ends before this. */
const UNTRIED_NODE = 23;

export async function checkRuntime(config: Config): Promise<Check[]> {
  return [
    nodeVersion(process.versions.node),
    await webSockets(),
    openFiles(openFilesLimit(), config.maxConnections),
    dataDir(config),
  ];
}

export function openFiles(limit: number, maxConnections: number): Check {
  const possible = connectionsWithin(limit);
  const found = `${Number.isFinite(limit) ? number(limit) : 'any number of'} files and sockets may be open`;
  if (possible >= maxConnections) return ok('open files', found);
  return warn(
    'open files',
    `${found}: room for ${number(possible)} connections instead of ${number(maxConnections)}`,
    'Raise the limit (`ulimit -n`, `LimitNOFILE=`), or lower MAX_CONNECTIONS.',
  );
}

export function nodeVersion(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < LEAST_NODE.major || (major === LEAST_NODE.major && minor < LEAST_NODE.minor)) {
    return fail('Node.js', `version ${version}`, INSTALL);
  }
  if (major >= UNTRIED_NODE) {
    return warn(
      'Node.js',
      `version ${version}, which is not tried`,
      `Use Node.js ${LEAST_NODE.major} or 22.`,
    );
  }
  return ok('Node.js', `version ${version}`);
}

async function webSockets(): Promise<Check> {
  const place = `${process.platform} ${process.arch}, Node ${process.versions.node}`;
  try {
    await import('uWebSockets.js');
    return ok('uWebSockets.js', `its binary loads on ${place}`);
  } catch (error) {
    const reason = describe(error).split('\n')[0];
    return fail(
      'uWebSockets.js',
      `its binary does not load on ${place}: ${reason}`,
      'Use Node.js 20 or 22 on Linux (glibc), macOS or Windows, and install again; for a newer Node.js point the ' +
        'dependency at github:uNetworking/uWebSockets.js.',
    );
  }
}

export function dataDir({ dataDir: path, databaseUrl, opsToken }: Config): Check {
  const full = resolve(path);
  if (databaseUrl && opsToken) return ok('data folder', 'not needed: DATABASE_URL and OPS_TOKEN are set');
  try {
    // What this had to make is taken away again: a look leaves nothing behind.
    const made = mkdirSync(full, { recursive: true });
    accessSync(full, constants.W_OK);
    if (made !== undefined) removeEmpty(full, made);
    else return existing(full);
    return ok('data folder', `${full} can be made`);
  } catch (error) {
    return fail(
      'data folder',
      `${full}: ${describe(error)}`,
      'Set DATA_DIR to a folder that this user may write to.',
    );
  }
}

/** A node refuses a folder that can't be its own, and closes one that others may enter. */
function existing(path: string): Check {
  const fault = whyNotOurs(path);
  if (fault !== undefined) {
    return fail('data folder', fault, 'Set DATA_DIR to a folder that a node may make for itself.');
  }
  const mode = wideMode(path);
  if (mode === undefined) return ok('data folder', `${path} can be written to, by this user alone`);
  return warn(
    'data folder',
    `${path} has the mode ${mode.toString(8)}: other users of this machine may enter it`,
    'Its next node closes it. If you do not trust them, begin with a new folder: they may have read the keys in it.',
  );
}

function removeEmpty(from: string, upTo: string): void {
  rmdirSync(from);
  if (from !== resolve(upTo)) removeEmpty(dirname(from), upTo);
}
