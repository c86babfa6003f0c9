import { readFileSync } from 'node:fs';
import { cpuSecondsOf } from '../../test/support/servers/process/process-table.ts';
import { ServerProcess } from '../../test/support/servers/process/server-process.ts';

/**
 * A Node program under measurement: a process with a directory of its own, which is its working directory. When it is ready, it
 * prints a line of JSON, an object with `ready: true` or, as `stockade sync` does, `syncing: true`.
 */
export class NodeProgram<T> implements AsyncDisposable {
  readonly announcement: T;
  readonly #process: ServerProcess;

  private constructor(process: ServerProcess, announcement: T) {
    this.#process = process;
    this.announcement = announcement;
  }

  /**
   * @param env in addition to this process' own @throws ServerStartError with the program's output, if it isn't ready
   * in time
   */
  static async start<T>(name: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<NodeProgram<T>> {
    const server = await ServerProcess.create({ name, lastSignal: 'KILL' });
    try {
      let announcement: T | undefined;
      const isReady = async () => {
        announcement = readyLine<T>(await server.log());
        return announcement !== undefined;
      };
      await server.launch(process.execPath, args, isReady, { ...process.env, ...env });
      return new NodeProgram(server, announcement!);
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  /** A file in the program's directory. */
  read(path: string): string {
    return readFileSync(`${this.#process.directory}/${path}`, 'utf8');
  }

  get pid(): number {
    return this.#process.pid;
  }

  cpuSeconds(): number {
    return cpuSecondsOf(this.#process.pid);
  }

  /** Stops the process until `resume`, and returns when it no longer runs. */
  pause(): Promise<void> {
    return this.#process.freeze();
  }

  resume(): void {
    this.#process.signal('SIGCONT');
  }

  /** The end of its output, and whether it still runs. */
  async lastWords(): Promise<string> {
    const state = this.#process.isUp ? 'runs' : 'has ended';
    return `the process ${state}; the end of its log:\n${await this.#process.log()}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.end('SIGTERM');
    await this.#process.remove();
  }
}

function readyLine<T>(log: string): T | undefined {
  for (const line of log.split('\n')) {
    if (!line.startsWith('{') || !line.endsWith('}')) continue;
    const value = JSON.parse(line) as { ready?: unknown; syncing?: unknown };
    if (value.ready === true || value.syncing === true) return value as T;
  }
  return undefined;
}
