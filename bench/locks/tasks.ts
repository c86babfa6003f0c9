/** What the clients of a line do. All of it in plain values: it is sent to the processes that do it. */

/** How long the work inside a lock takes: `insideMs` on average, up to `spreadMs` more or less each time. */
export interface Inside {
  readonly insideMs: number;
  readonly spreadMs: number;
}

/** A critical section, each client always on the same one of `segments` locks. */
export interface SectionTask extends Inside {
  readonly kind: 'spin' | 'wake-up';
  readonly segments: number;
}

/** Purchases of one unit, all from one segment. The work inside is for a batch under `lane`, else for an order. */
export interface TakeTask extends Inside {
  readonly kind: 'lane' | 'one by one';
  readonly strategy: 'script' | 'lock';
}

export interface IdTask {
  readonly kind: 'redis counter' | 'stockade ids';
}

export type Task = SectionTask | TakeTask | IdTask;
