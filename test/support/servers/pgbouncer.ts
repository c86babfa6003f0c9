/** PgBouncer in front of a Postgres of the tests. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { findServer } from '../../../scripts/servers.mjs';
import { APP_ROLE, OWNER_ROLE } from '../postgres/least-rights.ts';
import { postgresAccount } from './postgres-account.ts';
import { freePort } from './process/free-port.ts';
import { ServerProcess } from './process/server-process.ts';

export type PoolMode = 'session' | 'transaction' | 'statement';

const answerLimitMs = 1_000;
const USERS = ['postgres', OWNER_ROLE, APP_ROLE];

export class PgBouncer implements AsyncDisposable {
  readonly #process: ServerProcess;
  readonly #port: number;

  private constructor(process: ServerProcess, port: number) {
    this.#process = process;
    this.#port = port;
  }

  /** @param postgresUrl the server behind it; every database there can be reached */
  static async start(
    poolMode: PoolMode,
    postgresUrl: string,
    settings: Record<string, string> = {},
  ): Promise<PgBouncer> {
    const folder = findServer('pgbouncer');
    if (!folder) throw new Error('pgbouncer not found: run `node scripts/ensure-servers.mjs pgbouncer`');
    const process = await ServerProcess.create({
      name: 'pgbouncer',
      account: postgresAccount(),
      lastSignal: 'KILL',
    });
    const bouncer = new PgBouncer(process, await freePort());
    try {
      await writeFile(join(process.directory, 'users.txt'), USERS.map((user) => `"${user}" ""\n`).join(''));
      const file = join(process.directory, 'pgbouncer.ini');
      await writeFile(file, bouncer.#configuration(poolMode, new URL(postgresUrl), settings));
      await process.launch(join(folder, 'pgbouncer'), [file], () => answers(bouncer.through(postgresUrl)));
      return bouncer;
    } catch (error) {
      await process.remove();
      throw error;
    }
  }

  /** The url of the same database and user through this proxy. */
  through(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.port = String(this.#port);
    return url.href;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.remove();
  }

  #configuration(poolMode: PoolMode, behind: URL, settings: Record<string, string>): string {
    const own = {
      listen_addr: '127.0.0.1',
      listen_port: String(this.#port),
      unix_socket_dir: '',
      auth_type: 'trust',
      auth_file: join(this.#process.directory, 'users.txt'),
      pool_mode: poolMode,
      ...settings,
    };
    const lines = Object.entries(own).map(([name, value]) => `${name} = ${value}`);
    return `[databases]\n* = host=${behind.hostname} port=${behind.port}\n[pgbouncer]\n${lines.join('\n')}\n`;
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: answerLimitMs });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
