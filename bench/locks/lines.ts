/** The run: measures every line of the table, one after the other, on a Redis of its own. */
import { Redis } from 'ioredis';
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { RedisServer } from '../../test/support/servers/redis-server.ts';
import { count, rounded } from '../support/figures.ts';
import { ClientProcesses } from './client-processes.ts';
import type { LocksParameters } from './options.ts';
import type { TakeTask, Task } from './tasks.ts';

export interface Line {
  readonly task: Task;
  readonly clients: number;
  readonly processes: number;
  readonly perSecond: number;
  readonly samples: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Relative margin of error of the mean latency in percent; with several processes, the largest. */
  readonly rmePercent: number;
  /** Commands that Redis has executed per call, including those within scripts. */
  readonly commandsEach: number;
}

export interface Lines {
  readonly grid: readonly Line[];
  /** 1, 16 and 64 locks, with 2 ms of work inside; waiters are woken. */
  readonly striping: readonly Line[];
  readonly strategies: readonly Line[];
  readonly ids: readonly Line[];
}

export const SEGMENTS = [1, 4, 16, 64];
const BAR_SEGMENTS = [1, 16, 64];
const CLIENTS = [1, 16, 64, 256];
export const INSIDE_MS = 2;
/** A line that a bar depends on is measured this many times as long. */
const BAR_FACTOR = 5;

const STRATEGIES: readonly Omit<TakeTask, 'spreadMs'>[] = (['script', 'lock'] as const).flatMap((strategy) =>
  (strategy === 'lock' ? [0, INSIDE_MS] : [0]).flatMap((insideMs) =>
    (['one by one', 'lane'] as const).map((kind) => ({ kind, strategy, insideMs })),
  ),
);

/** Commands of connecting and of the bench itself. */
const NOT_COUNTED = /^(info|config|ping|client|hello|command|subscribe|unsubscribe|script)\b/;

export async function measureLines(parameters: LocksParameters): Promise<Lines> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const redis = await RedisServer.start({ appendonly: true, extraArgs: ['--appendfsync', 'everysec'] });
    teardown.add(() => redis[Symbol.asyncDispose]());
    const processes = await ClientProcesses.start(
      redis.url,
      Math.max(parameters.processes, parameters.stripingProcesses),
    );
    teardown.add(() => processes.end());
    const watcher = new Redis(redis.url);
    teardown.add(() => watcher.disconnect());
    return await new Meter(parameters, processes, watcher).all();
  } finally {
    await teardown.release();
  }
}

class Meter {
  readonly #parameters: LocksParameters;
  readonly #processes: ClientProcesses;
  readonly #redis: Redis;
  #runs = 0;

  constructor(parameters: LocksParameters, processes: ClientProcesses, redis: Redis) {
    this.#parameters = parameters;
    this.#processes = processes;
    this.#redis = redis;
  }

  async all(): Promise<Lines> {
    const { clients, stripingProcesses, spreadMs } = this.#parameters;
    const striping = await this.#each(
      'striping',
      BAR_SEGMENTS.map((segments) => () => {
        const task: Task = { kind: 'wake-up', segments, insideMs: INSIDE_MS, spreadMs };
        return this.#line(task, clients, stripingProcesses, BAR_FACTOR);
      }),
    );
    const strategies = await this.#each(
      'strategies',
      STRATEGIES.map((task) => () => this.#line({ ...task, spreadMs }, clients, 1, BAR_FACTOR)),
    );
    const ids = await this.#each('ids', [
      () => this.#line({ kind: 'redis counter' }, Math.min(64, clients), 1),
      () => this.#line({ kind: 'stockade ids' }, 1, 1),
    ]);
    return { striping, strategies, ids, grid: await this.#each('grid', this.#gridLines()) };
  }

  #gridLines(): (() => Promise<Line>)[] {
    const { clients: most, processes, spreadMs } = this.#parameters;
    return [0, INSIDE_MS].flatMap((insideMs) =>
      CLIENTS.filter((clients) => clients <= most).flatMap((clients) =>
        [1, processes]
          .filter((n) => clients % n === 0)
          .flatMap((n) =>
            SEGMENTS.flatMap((segments) =>
              (['spin', 'wake-up'] as const).map(
                (kind) => () => this.#line({ kind, segments, insideMs, spreadMs }, clients, n),
              ),
            ),
          ),
      ),
    );
  }

  async #each(what: string, measurements: readonly (() => Promise<Line>)[]): Promise<Line[]> {
    const lines: Line[] = [];
    for (const measure of measurements) lines.push(await measure());
    note(`${what}: ${count(lines.length)} lines measured`);
    return lines;
  }

  async #line(task: Task, clients: number, processes: number, factor = 1): Promise<Line> {
    const { ms, warmUpMs } = this.#parameters;
    await this.#redis.flushall();
    await this.#redis.config('RESETSTAT');
    const load = { clients, warmUpMs, ms: ms * factor };
    const results = await this.#processes.run(task, load, processes, `run-${++this.#runs}`);
    const commands = await this.#commands();
    const latencies = results.flatMap((result) => result.latencies).sort((a, b) => a - b);
    const done = results.reduce((sum, result) => sum + result.done, 0);
    // Processes don't begin and end at the same instant: the time from the first begin to the last end counts.
    const began = Math.min(...results.map((result) => result.began));
    const ended = Math.max(...results.map((result) => result.ended));
    const at = (part: number) =>
      latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * part))] ?? 0;
    return {
      task,
      clients,
      processes,
      perSecond: rounded((latencies.length / (ended - began)) * 1_000, 1),
      samples: latencies.length,
      p50Ms: rounded(at(0.5), 4),
      p99Ms: rounded(at(0.99), 4),
      rmePercent: rounded(Math.max(...results.map((result) => result.rme)), 2),
      commandsEach: rounded(commands / done, 2),
    };
  }

  async #commands(): Promise<number> {
    const stats = await this.#redis.info('commandstats');
    return [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)]
      .filter(([, name]) => !NOT_COUNTED.test(name!))
      .reduce((sum, [, , calls]) => sum + Number(calls), 0);
  }
}
