import { fileURLToPath } from 'node:url';
import { until } from '../fixtures.ts';
import { ServerProcess } from '../servers/process/server-process.ts';

const PROGRAM = fileURLToPath(new URL('./lock-holder-program.mjs', import.meta.url));

interface Line {
  readonly ready?: true;
  readonly token?: number;
  readonly written?: string;
  readonly lost?: string;
}

/** A holder of a lock in a process of its own, which can be frozen and killed. */
export class LockHolder implements AsyncDisposable {
  readonly #process: ServerProcess;
  #token = 0;

  private constructor(process: ServerProcess) {
    this.#process = process;
  }

  static async start(lock: { url: string; name: string; ttlMs: number }): Promise<LockHolder> {
    const holder = new LockHolder(await ServerProcess.create({ name: 'lock-holder', lastSignal: 'KILL' }));
    const args = [PROGRAM, JSON.stringify(lock)];
    await holder.#process.launch(process.execPath, args, async () => {
      holder.#token = (await holder.#said('ready'))?.token ?? 0;
      return holder.#token > 0;
    });
    return holder;
  }

  get token(): number {
    return this.#token;
  }

  freeze(): Promise<void> {
    return this.#process.freeze();
  }

  thaw(): void {
    this.#process.signal('SIGCONT');
  }

  kill(): Promise<void> {
    return this.#process.end('SIGKILL');
  }

  /** Redis' reply to a write with the holder's token. */
  write(): Promise<string> {
    this.#process.signal('SIGUSR2');
    return this.#hear('written');
  }

  /** What the holder learned about the loss of its lock. */
  loss(): Promise<string> {
    return this.#hear('lost');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.remove();
  }

  async #hear(what: 'written' | 'lost'): Promise<string> {
    const line = await until(() => this.#said(what), { what: `the holder says what it has ${what}` });
    return line?.[what] ?? '';
  }

  async #said(what: keyof Line): Promise<Line | undefined> {
    const lines = (await this.#process.log()).split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Line).find((line) => line[what] !== undefined);
  }
}
