import { accessSync, constants, mkdirSync, rmdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { whyNotOurs, wideMode } from '../../config/private-folder.ts';
import { COST_OF_NODE_HTTP, chooseHttpServer } from '../../node/process/http-server.ts';
import { connectionsWithin, openFilesLimit } from '../../node/process/open-files.ts';
import { describe } from '../terminal/explain.ts';
import { number } from '../terminal/output.ts';
import { type Check, checksOf } from './check.ts';

const { ok, warn, fail } = checksOf('runtime');
/** The first version with `crypto.hash`, which every request with a token calls. */
const LEAST_NODE = { major: 20, minor: 12 };
/** The versions on which `npm run test:node` runs the tests. */
const TESTED_NODES = [20, 22, 24, 26];
const BEST_NODE = 24;

export async function checkRuntime(config: Config): Promise<Check[]> {
  return [
    nodeVersion(process.versions.node),
    await httpServer(config.httpServer),
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
    const least = `${LEAST_NODE.major}.${LEAST_NODE.minor}`;
    return fail('Node.js', `version ${version}`, `Install Node.js ${BEST_NODE}, or another from ${least}.`);
  }
  if (TESTED_NODES.includes(major)) return ok('Node.js', `version ${version}`);
  const tested = TESTED_NODES.join(', ');
  return warn('Node.js', `version ${version}, which is not tested`, `Use one of Node.js ${tested}.`);
}

async function httpServer(wanted: Config['httpServer']): Promise<Check> {
  try {
    const { kind, why } = await chooseHttpServer(wanted);
    if (kind === 'uws') return ok('HTTP', 'uWebSockets.js serves: its binary loads');
    return ok(
      'HTTP',
      why === undefined ? 'node:http serves' : `node:http serves, because ${why}: ${COST_OF_NODE_HTTP}`,
    );
  } catch (error) {
    return fail(
      'HTTP',
      describe(error),
      'Unset HTTP_SERVER, or use a version of Node.js for which it has a binary.',
    );
  }
}

export function dataDir({ dataDir: path, databaseUrl, opsToken }: Config): Check {
  const full = resolve(path);
  if (databaseUrl && opsToken) return ok('data folder', 'not needed: DATABASE_URL and OPS_TOKEN are set');
  try {
    // Folders that this check makes are removed again, because doctor changes nothing.
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

/** A node refuses a folder that it can't have for itself, and denies other users access to the folder that it uses. */
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
    'The next start of a node denies them access. If you do not trust them, begin with a new folder: they may have read ' +
      'the keys in it.',
  );
}

function removeEmpty(from: string, upTo: string): void {
  rmdirSync(from);
  if (from !== resolve(upTo)) removeEmpty(dirname(from), upTo);
}
