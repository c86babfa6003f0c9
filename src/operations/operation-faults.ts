/** Operations that were given up, or have failed, for want of a store or of time. */
import { StockadeError } from '../engine/errors.ts';

/** What a change leaves open that has failed for want of a store, or was given up. */
const MAY_BE_DONE = 'the change may be made all the same: look at the sale before you repeat it';

interface Circumstances {
  /** Something was to be changed. */
  readonly changes?: boolean;
  readonly cause?: unknown;
}

/** An operation was given up, or has failed, and these stores do not answer. */
export class StoresAway extends StockadeError {
  /** Their names, one at least. */
  readonly stores: readonly string[];

  constructor(stores: readonly string[], { changes, cause }: Circumstances = {}) {
    super('unavailable', changes ? `${notAnswering(stores)}; ${MAY_BE_DONE}` : notAnswering(stores), {
      cause,
    });
    this.stores = stores;
  }
}

/** `Redis does not answer`. */
export function notAnswering(stores: readonly string[]): string {
  return `${stores.join(' and ')} ${stores.length === 1 ? 'does' : 'do'} not answer`;
}

/** An operation was given up although every store answers: it takes too long. */
export class OperationTimedOut extends StockadeError {
  constructor(operation: string, deadlineMs: number, { changes }: Circumstances = {}) {
    const what = `${operation} was not done within ${deadlineMs / 1_000} s, although the stores answer`;
    super('unavailable', changes ? `${what}; ${MAY_BE_DONE}` : what);
  }
}

/** An operation has met a rebuild of its sale: nobody's fault, and over in a moment. */
export class MetRebuild extends StockadeError {
  constructor(operation: string, { changes, cause }: Circumstances = {}) {
    const what = `${operation} has met a rebuild of the sale`;
    super('unavailable', `${what}; ${changes ? MAY_BE_DONE : 'ask again'}`, { cause });
  }
}
