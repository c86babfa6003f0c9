/** Runs seeds in child processes, side by side. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { SeedPlan, SeedReport } from './run.ts';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Of the repository, without a planted bug. */
export const SESSION = fileURLToPath(new URL('./session.ts', import.meta.url));

/**
 * PGlite is WebAssembly. V8 compiles it once and does not optimise it: a planted bug then costs a fifth less, and a thousand seeds
 * cost the same.
 */
const QUICK_COMPILER = ['--liftoff-only'];

export interface Task extends SeedPlan {
  /** See `SeedRunner.seedsOf`. */
  readonly session: string;
}

export interface RanSeed extends SeedReport {
  /** What the seed cost its process, in milliseconds of processor time. */
  readonly cpuMs: number;
}

/** A child that runs one seed at a time. */
export class Runner {
  readonly #child: ChildProcess;
  #complaint = '';
  #waiting: { resolve(report: RanSeed): void; reject(error: Error): void } | undefined;

  /** @param archive see `SeedRunner.open` */
  constructor(archive?: string) {
    const data = archive === undefined ? [] : ['--data', archive];
    this.#child = fork(fileURLToPath(new URL('./main.ts', import.meta.url)), ['--child', ...data], {
      execArgv: [...QUICK_COMPILER, '--import', 'tsx'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.stderr!.on('data', (data) => {
      this.#complaint = `${this.#complaint}${data}`.slice(-4_000);
    });
    this.#child.on('message', (report: RanSeed) => this.#waiting?.resolve(report));
    this.#child.on('error', (error) => this.#waiting?.reject(error));
    this.#child.on('exit', (code) =>
      this.#waiting?.reject(
        new Error(`a process of the simulation ended with code ${code}: ${this.#complaint}`),
      ),
    );
  }

  /** @throws if the child dies */
  run(task: Task): Promise<RanSeed> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#child.send(task);
    });
  }

  end(): void {
    this.#waiting = undefined;
    this.#child.kill();
  }
}

/** Starts that many children, for as long as the work lasts. */
export async function withRunners<T>(
  count: number,
  work: (runners: readonly Runner[]) => Promise<T>,
): Promise<T> {
  const runners = Array.from({ length: count }, () => new Runner());
  try {
    return await work(runners);
  } finally {
    for (const runner of runners) runner.end();
  }
}
