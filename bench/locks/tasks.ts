/** What the clients of a line do. Plain data, because it is sent to the child processes. */

/** How long the work inside a lock takes: `insideMs` on average, up to `spreadMs` more or less each time. */
export interface Inside {
  readonly insideMs: number;
  readonly spreadMs: number;
}

/** A critical section. Each client always uses the same one of `segments` locks. */
export interface SectionTask extends Inside {
  readonly kind: 'spin' | 'wake-up';
  readonly segments: number;
}

/** Purchases of one unit, all from one segment. The work inside is done per batch with `lane`, else per order. */
export interface TakeTask extends Inside {
  readonly kind: 'lane' | 'one by one';
  readonly strategy: 'script' | 'lock';
}

export interface IdTask {
  readonly kind: 'redis counter' | 'stockade ids';
}

export type Task = SectionTask | TakeTask | IdTask;
