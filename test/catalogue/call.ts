/**
 * One call of a strategy's `sell`, which the test can hold at named points.
 *
 *   running ──comes to a point where it must be held──> held ──resume──> running
 *   running ──sleeps on the node's clock──> asleep ──time passes──> running
 *   running ──is about to wait for a lock──> waiting ──comes to any other point──> running
 *   running ──answers, or throws──> done
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Outcome, Point, Steps } from '../../catalogue/parts/contract.ts';

const current = new AsyncLocalStorage<Call>();

/** Thrown in a call that is held when its test ends. */
export class Abandoned extends Error {
  override readonly name = 'Abandoned';
}

export type CallState = 'running' | 'held' | 'asleep' | 'waiting' | 'done';

export class Call {
  readonly outcome: Promise<Outcome>;
  state: CallState = 'running';
  /** Where it is held, or was last. */
  point: Point | undefined;
  readonly #holdAt: Set<Point>;
  #release: { resume(): void; abandon(): void } | undefined;
  #abandoned = false;

  constructor(sell: () => Promise<Outcome>, holdAt: readonly Point[]) {
    this.#holdAt = new Set(holdAt);
    this.outcome = current.run(this, sell).finally(() => {
      this.state = 'done';
    });
    // Tests await it later, or never if the node has died.
    this.outcome.catch(() => {});
  }

  /** Runs it to the next of its points. */
  resume(): void {
    this.#release?.resume();
    this.#release = undefined;
  }

  /** Runs it to its end. */
  finish(): Promise<Outcome> {
    this.#holdAt.clear();
    this.resume();
    return this.outcome;
  }

  /** Makes what it awaits throw, so that it never continues. */
  abandon(): void {
    this.#abandoned = true;
    this.#release?.abandon();
    this.#release = undefined;
  }

  async comesTo(point: Point): Promise<void> {
    this.point = point;
    this.state = point === 'waiting' ? 'waiting' : 'running';
    if (this.#abandoned) throw new Abandoned(`at ${point}`);
    if (!this.#holdAt.has(point)) return;
    this.state = 'held';
    await new Promise<void>((resume, reject) => {
      this.#release = { resume, abandon: () => reject(new Abandoned(`held at ${point}`)) };
    });
    this.state = 'running';
  }

  /** @returns to be called when it wakes */
  fallsAsleep(): () => void {
    this.state = 'asleep';
    return () => {
      this.state = 'running';
    };
  }
}

/** Steps that hold up the calls that are to be held up; code that runs outside of any call passes. */
export const HOLDING_STEPS: Steps = {
  at: (point) => current.getStore()?.comesTo(point),
};

/** For a node's clock. */
export function callFallsAsleep(): () => void {
  return current.getStore()?.fallsAsleep() ?? (() => {});
}
