/** The child processes in which clients run. They are started once, and measure one line after the other. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BenchFailure } from '../support/failure.ts';
import type { Load, LoopResult } from './closed-loop.ts';
import type { Order, Report } from './crew-member.ts';
import type { Task } from './tasks.ts';

const PROGRAM = fileURLToPath(new URL('./crew-member.ts', import.meta.url));

export class Crew {
  readonly #members: readonly ChildProcess[];

  private constructor(members: readonly ChildProcess[]) {
    this.#members = members;
  }

  static async start(url: string, size: number): Promise<Crew> {
    const crew = new Crew(Array.from({ length: size }, () => fork(PROGRAM, [url])));
    await Promise.all(crew.#members.map((member) => nextMessage(member)));
    return crew;
  }

  /** Runs the task with its clients split evenly over the first `processes`. @throws BenchFailure if one fails */
  run(task: Task, load: Load, processes: number, run: string): Promise<LoopResult[]> {
    const share = { ...load, clients: load.clients / processes };
    return Promise.all(
      this.#members.slice(0, processes).map(async (member, i) => {
        const answer = nextMessage<Report>(member);
        member.send({ task, load: share, firstClient: i * share.clients, run } satisfies Order);
        const report = await answer;
        if ('failure' in report) throw new BenchFailure(report.failure);
        return report.result;
      }),
    );
  }

  async end(): Promise<void> {
    await Promise.all(
      this.#members.map((member) => {
        const ended = new Promise((resolve) => member.once('exit', resolve));
        member.disconnect();
        return ended;
      }),
    );
  }
}

function nextMessage<T>(member: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const died = (code: number | null) =>
      reject(new BenchFailure(`a process of clients ended with code ${code}`));
    member.once('exit', died);
    member.once('message', (message) => {
      member.off('exit', died);
      resolve(message as T);
    });
  });
}
