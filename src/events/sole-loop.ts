/**
 * A loop of steps that one process runs for all. The others stand by, and one of them continues when it dies.
 *
 *   standing by ──the lock is free──> working ──a step meets another process's work, or fails──> standing by
 *                                         └──before a step: the lock is lost──> standing by
 *
 * The lock only avoids double work. It may be lost during a step, and for a moment without notice. So a step must be harmless beside
 * another process's step, and throws `Contested` when it notices one.
 */
import { StockadeError } from '../engine/errors.ts';
import { Backpressure, type BackpressureOptions } from '../lib/backpressure.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { rest } from '../lib/rest.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';

/** A process that stands by tries the lock this often. */
const STAND_BY_MS = 500;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;
/** While the loop yields to buyers, it checks this often whether it still must. */
const YIELD_STEP_MS = 50;

/** Another process does the same work: the lock was lost without notice. */
export class Contested extends StockadeError {
  constructor() {
    super('contested', 'another process has done the same work');
  }
}

export interface SoleLoopOptions {
  readonly locks: SaleLocks;
  /** Name of the lock. No sale can have it: ids of sales have no colon. */
  readonly name: `:${string}`;
  readonly backpressure: BackpressureOptions;
  /**
   * One unit of work. @param signal aborted when the loop is to end
   * @returns how long to rest before the next one, in milliseconds; 0 if there is more to do
   */
  step(signal: AbortSignal): Promise<number>;
  /** A step has failed. */
  crashed(error: unknown, retryMs: number): void;
}

export class SoleLoop {
  readonly #options: SoleLoopOptions;
  readonly #backpressure: Backpressure;
  readonly #end = new AbortController();
  #working = false;
  /** It worked, until a step failed or the lock was lost. Nobody is known to have taken the lock since. */
  #hasFailed = false;
  #running: Promise<void> | undefined;

  constructor(options: SoleLoopOptions) {
    this.#options = options;
    this.#backpressure = new Backpressure(options.backpressure);
  }

  /** Whether this process does the work: it has the lock, or rests after a failure. */
  get isWorking(): boolean {
    return this.#working || this.#hasFailed;
  }

  /** There is work that has waited long enough: the loop does not yield to buyers before it is done. */
  awaited(): void {
    this.#backpressure.awaited(monotonicMs());
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Ends after the step under way. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    let retryMs = RETRY_FIRST_MS;
    while (!signal.aborted) {
      try {
        await rest(await this.#turn(signal), signal);
        retryMs = RETRY_FIRST_MS;
      } catch (error) {
        if (error instanceof Contested) this.#hasFailed = false;
        else if (this.#working) this.#hasFailed = true;
        await this.#standBy();
        if (error instanceof Contested) continue;
        if (signal.aborted) break;
        this.#options.crashed(error, retryMs);
        await rest(retryMs, signal);
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
    this.#hasFailed = false;
    await this.#standBy();
  }

  /** @returns how long to rest */
  async #turn(signal: AbortSignal): Promise<number> {
    const { locks, name, step } = this.#options;
    if (this.#working && !(await locks.holds(name))) {
      // If Postgres is away, nobody else has the lock either.
      this.#hasFailed = true;
      await this.#standBy();
    }
    this.#working ||= await locks.tryLock(name);
    this.#hasFailed = false;
    if (!this.#working) return STAND_BY_MS;
    if (this.#backpressure.mayYield(monotonicMs())) return YIELD_STEP_MS;
    const restMs = await step(signal);
    if (restMs > 0) this.#backpressure.drained();
    return restMs;
  }

  async #standBy(): Promise<void> {
    if (!this.#working) return;
    this.#working = false;
    await this.#options.locks.unlock(this.#options.name);
  }
}
