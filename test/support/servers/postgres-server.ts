import { chmod, chown, copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { findServer } from '../../../scripts/servers.mjs';
import type { Certificate } from './certificates.ts';
import { createDatabase } from './create-database.ts';
import { putNewPostgres } from './new-postgres.ts';
import { postgresAccount } from './postgres-account.ts';
import { freePort } from './process/free-port.ts';
import { childrenOf, familyCpuSecondsOf, isAlive } from './process/process-table.ts';
import { ServerProcess, ServerStartError } from './process/server-process.ts';

const portAttempts = 5;
const answerLimitMs = 1_000;

export interface PostgresServerOptions {
  /** Enables TLS; then only the administrator may connect without it. */
  certificate?: Certificate;
  /** Settings as in postgresql.conf, which override those of the harness. */
  settings?: Record<string, string>;
}

/** A Postgres for one test. `stop` and `kill` leave its directory for `restart`; disposing removes both. */
export class PostgresServer implements AsyncDisposable {
  readonly #process: ServerProcess;
  readonly #folder: string;
  readonly #settings: Record<string, string>;
  readonly port: number;

  private constructor(
    process: ServerProcess,
    folder: string,
    settings: Record<string, string>,
    port: number,
  ) {
    this.#process = process;
    this.#folder = folder;
    this.#settings = settings;
    this.port = port;
  }

  static async start({ settings = {}, certificate }: PostgresServerOptions = {}): Promise<PostgresServer> {
    const folder = findServer('postgres');
    if (!folder) throw new Error('Postgres not found: run `node scripts/ensure-servers.mjs postgres`');
    const process = await ServerProcess.create({
      name: 'postgres',
      account: postgresAccount(),
      lastSignal: 'QUIT',
    });
    try {
      await putNewPostgres(dataOf(process), process, folder);
      const forTls = certificate ? await tlsSettings(process.directory, certificate) : {};
      return await PostgresServer.#startOnFreePort(process, folder, { ...forTls, ...settings });
    } catch (error) {
      await process.remove();
      throw error;
    }
  }

  static async #startOnFreePort(process: ServerProcess, folder: string, settings: Record<string, string>) {
    for (let attempt = 1; ; attempt++) {
      const server = new PostgresServer(process, folder, settings, await freePort());
      try {
        await server.restart();
        return server;
      } catch (error) {
        if (error instanceof ServerStartError && error.portTaken && attempt < portAttempts) continue;
        throw error;
      }
    }
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Creates an empty database. @returns its url */
  createDatabase(label?: string): Promise<string> {
    return createDatabase(this.url, label === undefined ? {} : { label });
  }

  /** `fast`: rolls back open transactions, then a checkpoint. `immediate`: no checkpoint, the next start recovers. */
  stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    this.resume();
    return this.#process.end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  }

  /** Simulates a power cut: the postmaster and all its children die at once. */
  async kill(): Promise<void> {
    if (!this.#process.isUp) return;
    // A stopped postmaster can't start another child, nor learn of a dead one and recover.
    await this.#process.freeze();
    const children = childrenOf(this.pid);
    for (const child of children) signalIfAlive(child, 'SIGKILL');
    await this.#process.end('SIGKILL');
    while (children.some(isAlive)) await delay(1);
  }

  /** Stops it if it runs, and starts it in the same directory and on the same port. */
  async restart(): Promise<void> {
    await this.stop();
    const settings = Object.entries({
      port: String(this.port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.#process.directory,
      // In the data directory, which is removed: segments in /dev/shm would outlive a killed server.
      dynamic_shared_memory_type: 'mmap',
      ...this.#settings,
    });
    await this.#process.launch(
      join(this.#folder, 'postgres'),
      ['-D', dataOf(this.#process), ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      () => this.#answers(),
    );
  }

  /** Stops the postmaster and all its children: connections stay open, and nothing is answered. */
  async pause(): Promise<void> {
    await this.#process.freeze();
    for (const child of childrenOf(this.pid)) signalIfAlive(child, 'SIGSTOP');
  }

  resume(): void {
    if (!this.#process.isUp) return;
    for (const child of childrenOf(this.pid)) signalIfAlive(child, 'SIGCONT');
    this.#process.signal('SIGCONT');
  }

  /** The pids of the postmaster and everything it has started: sessions, writers, autovacuum. */
  cpuSeconds(): number {
    return familyCpuSecondsOf(this.pid);
  }

  log(): Promise<string> {
    return this.#process.log();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.resume();
    return this.#process.remove();
  }

  /** Whether this server, and no other on the port, accepts connections. */
  async #answers(): Promise<boolean> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: answerLimitMs });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query('SHOW data_directory');
      return rows[0].data_directory === dataOf(this.#process);
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  }
}

/** The server refuses a key that others can read. */
async function tlsSettings(directory: string, { cert, key }: Certificate): Promise<Record<string, string>> {
  const [ownCert, ownKey, rules] = ['tls.crt', 'tls.key', 'pg_hba.conf'].map((name) => join(directory, name));
  await copyFile(cert, ownCert!);
  await copyFile(key, ownKey!);
  await writeFile(
    rules!,
    ['host all postgres 127.0.0.1/32 trust', 'hostssl all all 127.0.0.1/32 trust', ''].join('\n'),
  );
  await chmod(ownKey!, 0o600);
  const owner = postgresAccount();
  for (const file of owner ? [ownCert!, ownKey!, rules!] : []) await chown(file, owner!.uid, owner!.gid);
  return { ssl: 'on', ssl_cert_file: ownCert!, ssl_key_file: ownKey!, hba_file: rules! };
}

function dataOf(process: ServerProcess): string {
  return join(process.directory, 'data');
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself in the meantime.
  }
}
