/**
 * The files of a new Postgres. `initdb` takes 0.6 s of processor time, to copy what it has made takes a tenth of that. They are kept
 * for later runs, until the version of Postgres changes.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { postgresAccount } from './postgres-account.ts';
import type { ServerProcess } from './process/server-process.ts';

const KEPT = fileURLToPath(new URL('../../../node_modules/.cache/stockade', import.meta.url));

/** Puts them at `data`, for the account of the server. `programs` is the folder of `initdb`. */
export async function putNewPostgres(data: string, server: ServerProcess, programs: string): Promise<void> {
  const kept = join(KEPT, await nameFor(programs));
  if (existsSync(kept)) return copy(kept, data);
  await server.run(join(programs, 'initdb'), [
    ...['--pgdata', data, '--username', 'postgres', '--auth', 'trust'],
    // Only the creation skips fsync: the server itself runs with it, as in production.
    ...['--no-locale', '--encoding', 'UTF8', '--no-sync'],
  ]);
  await keep(data, kept);
}

/** Postgres does not use files of another account. */
async function nameFor(programs: string): Promise<string> {
  const uid = postgresAccount()?.uid ?? process.getuid?.();
  const { stdout } = await promisify(execFile)(join(programs, 'initdb'), ['--version']);
  const version = /\d[\w.]*/.exec(stdout)?.[0] ?? stdout.trim();
  return `new-postgres-${version}-${uid}`;
}

/** Two runs may begin at once, and a run may be killed: so the name stands only for a whole folder. */
async function keep(data: string, kept: string): Promise<void> {
  const draft = `${kept}.${randomBytes(6).toString('hex')}`;
  await mkdir(KEPT, { recursive: true });
  await copy(data, draft);
  try {
    await rename(draft, kept);
  } catch (error) {
    await rm(draft, { recursive: true });
    if (!existsSync(kept)) throw error;
  }
}

/** With owners and permissions. */
async function copy(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to]);
}
