/** What the clients of a line do. All of it in plain values: it is sent to the processes that do it. */

/** A critical section of `insideMs`, each client always on the same one of `segments` locks. */
export interface SectionTask {
  readonly kind: 'spin' | 'wake-up';
  readonly segments: number;
  readonly insideMs: number;
}

/** Purchases of one unit, all from one segment. */
export interface TakeTask {
  readonly kind: 'lane' | 'one by one';
  readonly strategy: 'script' | 'lock';
  /** Work inside the lock: for a batch under `lane`, for an order under `one by one`. */
  readonly insideMs: number;
}

export interface IdTask {
  readonly kind: 'redis counter' | 'stockade ids';
}

export type Task = SectionTask | TakeTask | IdTask;
