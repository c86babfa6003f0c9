/**
 * The bearer token of the ops port. Without OPS_TOKEN, a node makes a random token at its first start and keeps it in its data
 * folder, where commands on the same machine find it. So a user who can read that folder may operate the node.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, linkSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StockadeError } from '../engine/errors.ts';
import type { Config } from './config.ts';
import { FolderNotPrivate, makeFolderPrivate } from './private-folder.ts';

const TOKEN_BYTES = 24;
const LEAST_CHARACTERS = 16;
const OWNER_ONLY = 0o600;

type TokenConfig = Pick<Config, 'opsToken' | 'dataDir'>;

export class OpsTokenFault extends StockadeError {
  constructor(message: string, cause?: unknown) {
    super('ops_token', message, { cause });
  }
}

export function opsTokenFile(config: Pick<Config, 'dataDir'>): string {
  return join(config.dataDir, 'ops-token');
}

/** The token that a node requires: OPS_TOKEN, else the one in the data folder, which is made if there is none. */
export function opsToken(config: TokenConfig): string {
  if (!config.opsToken) secureFolder(config);
  return findOpsToken(config) ?? makeToken(config);
}

/** Makes the folder private before the token is read, so that a token put there by another user is not accepted. */
function secureFolder(config: TokenConfig): void {
  try {
    makeFolderPrivate(config.dataDir);
  } catch (error) {
    if (error instanceof FolderNotPrivate) throw error;
    throw unwritable(opsTokenFile(config), error);
  }
}

function unwritable(file: string, cause: unknown): OpsTokenFault {
  return new OpsTokenFault(
    `${file} can't be written; set OPS_TOKEN, or DATA_DIR to a folder of your own`,
    cause,
  );
}

/** The token that a command presents; `undefined` if there is none yet. */
export function findOpsToken(config: TokenConfig): string | undefined {
  if (config.opsToken) return config.opsToken.reveal();
  const file = opsTokenFile(config);
  const token = readIfThere(file);
  if (token !== undefined && token.length < LEAST_CHARACTERS) {
    throw new OpsTokenFault(
      `${file} holds no token: delete it, and a node will make a new one at its next start`,
    );
  }
  return token;
}

function readIfThere(file: string): string | undefined {
  try {
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) chmodSync(file, OWNER_ONLY);
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new OpsTokenFault(
      `${file} can't be read; set OPS_TOKEN, or DATA_DIR to a folder of your own`,
      error,
    );
  }
}

/**
 * Writes the token to a draft and then links it into place. So if two nodes start at the same time, both use the first one's
 * token, and no process reads half a token.
 */
function makeToken(config: TokenConfig): string {
  const file = opsTokenFile(config);
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    writeFileSync(draft, `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`, {
      mode: OWNER_ONLY,
      flag: 'wx',
    });
    try {
      linkSync(draft, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      unlinkSync(draft);
    }
  } catch (error) {
    throw unwritable(file, error);
  }
  return readFileSync(file, 'utf8').trim();
}
