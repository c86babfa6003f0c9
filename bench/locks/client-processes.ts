/** The child processes in which clients run. They are started once, and measure one line after the other. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BenchFailure } from '../support/failure.ts';
import type { Order, Report } from './client-process.ts';
import type { Load, LoopResult } from './closed-loop.ts';
import type { Task } from './tasks.ts';

const PROGRAM = fileURLToPath(new URL('./client-process.ts', import.meta.url));

export class ClientProcesses {
  readonly #processes: readonly ChildProcess[];

  private constructor(children: readonly ChildProcess[]) {
    this.#processes = children;
  }

  static async start(url: string, size: number): Promise<ClientProcesses> {
    const started = new ClientProcesses(Array.from({ length: size }, () => fork(PROGRAM, [url])));
    await Promise.all(started.#processes.map((child) => nextMessage(child)));
    return started;
  }

  /** Runs the task with its clients split evenly over the first `processes`. @throws BenchFailure if one fails */
  run(task: Task, load: Load, processes: number, run: string): Promise<LoopResult[]> {
    const share = { ...load, clients: load.clients / processes };
    return Promise.all(
      this.#processes.slice(0, processes).map(async (child, i) => {
        const answer = nextMessage<Report>(child);
        child.send({ task, load: share, firstClient: i * share.clients, run } satisfies Order);
        const report = await answer;
        if ('failure' in report) throw new BenchFailure(report.failure);
        return report.result;
      }),
    );
  }

  async end(): Promise<void> {
    await Promise.all(
      this.#processes.map((child) => {
        const ended = new Promise((resolve) => child.once('exit', resolve));
        child.disconnect();
        return ended;
      }),
    );
  }
}

function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const died = (code: number | null) =>
      reject(new BenchFailure(`a process of clients ended with code ${code}`));
    child.once('exit', died);
    child.once('message', (message) => {
      child.off('exit', died);
      resolve(message as T);
    });
  });
}
