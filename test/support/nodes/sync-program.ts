/** `stockade sync` under test: a process of its own. Its directory outlives it, so that it can be started again. */

import { ServerProcess } from '../servers/process/server-process.ts';
import { mainProgram, nodeFlags } from './build.ts';

const MAX_LOG_BYTES = 64 * 1024 * 1024;

export class SyncProgram implements AsyncDisposable {
  readonly #process: ServerProcess;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(process: ServerProcess, env: NodeJS.ProcessEnv) {
    this.#process = process;
    this.#env = env;
  }

  /** @param env the settings, in addition to what any program needs */
  static async start(env: Record<string, string>): Promise<SyncProgram> {
    const server = await ServerProcess.create({ name: 'stockade-sync', lastSignal: 'KILL' });
    const { PATH, HOME } = process.env;
    const program = new SyncProgram(server, { PATH, HOME, HOST: '127.0.0.1', OPS_PORT: '0', ...env });
    try {
      await program.start();
      return program;
    } catch (error) {
      await program[Symbol.asyncDispose]();
      throw error;
    }
  }

  async start(): Promise<void> {
    const args = [...nodeFlags('sync', this.#env), mainProgram, 'sync', '--json'];
    const isReady = async (pid: number) => (await this.log()).includes(`{"syncing":true,"pid":${pid},`);
    await this.#process.launch(process.execPath, args, isReady, this.#env);
  }

  /** Sends a signal, and does not wait. */
  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal);
  }

  kill(): Promise<void> {
    return this.#process.end('SIGKILL');
  }

  /** Everything that it has written since its last start. */
  log(): Promise<string> {
    return this.#process.log(MAX_LOG_BYTES);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#process.remove();
  }
}
