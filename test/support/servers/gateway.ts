/** nginx or HAProxy, configured by its file in `deploy/`; only addresses are replaced. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { findServer } from '../../../scripts/servers.mjs';
import { freePort } from './process/free-port.ts';
import { ServerProcess } from './process/server-process.ts';

export type GatewayKind = 'nginx' | 'haproxy';

export interface Behind {
  readonly nodePort: number;
  /** The port of the login service that nginx asks for the buyer's id. */
  readonly loginPort: number;
  /** The key with which HAProxy checks tokens; `undefined`: its environment has none. */
  readonly jwtSecret: string | undefined;
}

export class Gateway implements AsyncDisposable {
  readonly port: number;
  readonly #process: ServerProcess;

  private constructor(process: ServerProcess, port: number) {
    this.#process = process;
    this.port = port;
  }

  static async start(kind: GatewayKind, behind: Behind): Promise<Gateway> {
    const folder = findServer(kind);
    if (!folder) throw new Error(`${kind} not found: run \`node scripts/ensure-servers.mjs ${kind}\``);
    const process = await ServerProcess.create({ name: kind, lastSignal: 'KILL' });
    const gateway = new Gateway(process, await freePort());
    const file = join(process.directory, `${kind}.conf`);
    await writeFile(file, kind === 'nginx' ? gateway.#nginxFile(behind) : gateway.#haproxyFile(behind));
    const args =
      kind === 'nginx'
        ? ['-p', process.directory, '-c', file, '-e', 'stderr', '-g', 'daemon off; master_process off;']
        : ['-db', '-f', file];
    try {
      await process.launch(join(folder, kind), args, () => answers(gateway.port), {
        ...globalThis.process.env,
        JWT_SECRET: behind.jwtSecret,
      });
      return gateway;
    } catch (error) {
      await process.remove();
      throw error;
    }
  }

  log(): Promise<string> {
    return this.#process.log();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.remove();
  }

  #nginxFile({ nodePort, loginPort }: Behind): string {
    const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${name};`,
    );
    return replaced(file('nginx.conf'), {
      '/run/nginx-stockade.pid': 'nginx.pid',
      'http {\n': `http {\n${folders.join('\n')}\n`,
      'listen 80;': `listen 127.0.0.1:${this.port};`,
      '127.0.0.1:8080;': `127.0.0.1:${nodePort};`,
      '127.0.0.1:9000;': `127.0.0.1:${loginPort};`,
    });
  }

  #haproxyFile({ nodePort }: Behind): string {
    return replaced(file('haproxy.cfg'), {
      'bind :80\n': `bind 127.0.0.1:${this.port}\n`,
      'node1 127.0.0.1:8080\n': `node1 127.0.0.1:${nodePort}\n`,
    });
  }
}

function file(name: string): string {
  return readFileSync(new URL(`../../../deploy/${name}`, import.meta.url), 'utf8');
}

/** @throws if one of the words does not occur exactly once */
function replaced(text: string, words: Readonly<Record<string, string>>): string {
  let changed = text;
  for (const [from, to] of Object.entries(words)) {
    if (changed.split(from).length !== 2) throw new Error(`${JSON.stringify(from)} is not there once`);
    changed = changed.replace(from, () => to);
  }
  return changed;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
