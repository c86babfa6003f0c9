/** Why an operation failed, as errors and as the answers that the ops port gives. */
import { InvalidInput, StockadeError } from '../engine/errors.ts';
import { InsufficientStock, WrongState } from '../sync/operations.ts';
import { isProblemCode, problem, type Reply } from './problem.ts';

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

/** Its status is 500 or above if it is the node's fault and not the request's. */
export function failure(error: unknown): Reply {
  if (error instanceof InvalidInput) {
    return problem('invalid_request', { detail: error.message, faults: error.faults });
  }
  if (error instanceof WrongState)
    return problem('wrong_state', { detail: error.message, state: error.state });
  if (error instanceof InsufficientStock)
    return problem('insufficient_stock', { detail: error.message, remaining: error.remaining });
  if (error instanceof StockadeError && error.code !== 'unavailable' && isProblemCode(error.code)) {
    return problem(error.code, { detail: error.message });
  }
  // The operator sees what is wrong; the public port never says.
  const detail = error instanceof Error ? error.message : String(error);
  const title = error instanceof StoresAway ? notAnswering(error.stores) : 'This could not be done';
  return problem('unavailable', { title, detail });
}
