import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { findServer } from '../../../scripts/servers.mjs';
import { REDIS_PASSWORD, REDIS_USER, usersOfRedis } from '../postgres/least-rights.ts';
import type { Certificate } from './certificates.ts';
import { freePort } from './process/free-port.ts';
import { cpuSecondsOf } from './process/process-table.ts';
import { ServerProcess, ServerStartError } from './process/server-process.ts';

const portAttempts = 5;
const answerLimitMs = 1_000;
const USERS = 'users.acl';

export interface RedisServerOptions {
  /** Enables TLS, at a port of its own. */
  certificate?: Certificate;
  /** Keeps an append-only file, so that data survives `kill` and `restart`. Default false: a restart is empty. */
  appendonly?: boolean;
  /** Whether it has an administrator, or only the users of deploy/redis-users.acl. Default true. */
  administrator?: boolean;
  /** More arguments for redis-server, which override those of the harness. */
  extraArgs?: string[];
  /** A program and its arguments that replaces itself with redis-server, whose command line follows. */
  launcher?: readonly [string, ...string[]];
}

/** A Redis for one test. `stop` and `kill` leave its directory for `restart`; disposing removes both. */
export class RedisServer implements AsyncDisposable {
  readonly #process: ServerProcess;
  readonly #args: string[];
  readonly #launcher: readonly string[];
  readonly port: number;
  readonly #tls: Tls | undefined;

  private constructor(process: ServerProcess, args: string[], { port, tls, launcher }: Start) {
    this.#process = process;
    this.#args = args;
    this.#launcher = launcher;
    this.port = port;
    this.#tls = tls;
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const { appendonly = false, administrator = true, extraArgs = [], launcher = [], certificate } = options;
    const process = await ServerProcess.create({ name: 'redis', lastSignal: 'KILL' });
    await writeFile(join(process.directory, USERS), usersOfRedis(administrator));
    for (let attempt = 1; ; attempt++) {
      const port = await freePort();
      const tls = certificate && { certificate, port: await freePort() };
      const args = [
        ...redisArguments(process.directory, port, appendonly),
        ...(tls ? tlsArguments(tls) : []),
        ...extraArgs,
      ];
      const server = new RedisServer(process, args, { port, tls, launcher });
      try {
        await server.restart();
        return server;
      } catch (error) {
        if (error instanceof ServerStartError && error.portTaken && attempt < portAttempts) continue;
        await process.remove();
        throw error;
      }
    }
  }

  /** The url of the administrator. */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** The url of the product's user, which has the rights of deploy/redis-users.acl. */
  get productUrl(): string {
    return `redis://${REDIS_USER}:${REDIS_PASSWORD}@127.0.0.1:${this.port}`;
  }

  /** The same over TLS. */
  get tlsUrl(): string {
    if (!this.#tls) throw new Error('this server has no certificate');
    const { port, certificate } = this.#tls;
    return `rediss://${REDIS_USER}:${REDIS_PASSWORD}@127.0.0.1:${port}?sslrootcert=${certificate.authority}`;
  }

  get pid(): number {
    return this.#process.pid;
  }

  get directory(): string {
    return this.#process.directory;
  }

  /** Shuts down normally. */
  stop(): Promise<void> {
    return this.#process.end('SIGTERM');
  }

  /** Simulates a power cut. */
  kill(): Promise<void> {
    return this.#process.end('SIGKILL');
  }

  /** Stops it if it runs, and starts it in the same directory and on the same port. */
  async restart(): Promise<void> {
    await this.stop();
    const folder = findServer('redis');
    if (!folder) throw new Error('redis-server not found: run `node scripts/ensure-servers.mjs redis`');
    const [program, ...args] = [...this.#launcher, join(folder, 'redis-server'), ...this.#args];
    await this.#process.launch(program!, args, (pid) => answers(this.port, pid));
  }

  /** Stops the process: connections stay open, and nothing is answered. */
  pause(): Promise<void> {
    return this.#process.freeze();
  }

  resume(): void {
    this.#process.signal('SIGCONT');
  }

  cpuSeconds(): number {
    return cpuSecondsOf(this.pid);
  }

  log(): Promise<string> {
    return this.#process.log();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#process.remove();
  }
}

interface Tls {
  readonly port: number;
  readonly certificate: Certificate;
}

interface Start {
  readonly port: number;
  readonly tls: Tls | undefined;
  readonly launcher: readonly string[];
}

function tlsArguments({ port, certificate: { cert, key, authority } }: Tls): string[] {
  return Object.entries({
    'tls-port': String(port),
    'tls-cert-file': cert,
    'tls-key-file': key,
    'tls-ca-cert-file': authority,
    'tls-auth-clients': 'no',
    'tls-cluster': 'yes',
  }).flatMap(([name, value]) => [`--${name}`, value]);
}

function redisArguments(directory: string, port: number, appendonly: boolean): string[] {
  return Object.entries({
    port: String(port),
    bind: '127.0.0.1',
    dir: directory,
    aclfile: join(directory, USERS),
    save: '',
    appendonly: appendonly ? 'yes' : 'no',
    // This is the default, set explicitly: evicted keys would be lost stock.
    'maxmemory-policy': 'noeviction',
  }).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Whether the process with this pid, and no other server on the port, has loaded its data and serves. */
function answers(port: number, pid: number): Promise<boolean> {
  return new Promise((resolve) => {
    let reply = '';
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`AUTH ${REDIS_USER} ${REDIS_PASSWORD}\r\nINFO server\r\nPING\r\n`),
    );
    socket.setTimeout(answerLimitMs, () => socket.destroy());
    socket.on('data', (chunk) => {
      reply += chunk;
      if (/\+PONG\r\n|-LOADING/.test(reply)) socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(reply.includes(`process_id:${pid}\r\n`) && reply.includes('+PONG')));
  });
}
