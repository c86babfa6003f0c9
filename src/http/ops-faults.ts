/** Why an operation failed, as errors and as the answers that the ops port gives. */
import { InvalidInput, StockadeError } from '../engine/errors.ts';
import { WrongState } from '../sync/operations.ts';
import { isProblemCode, problem, type Reply } from './problem.ts';

/** An operation was given up, or has failed, and these stores do not answer. It may have been done in part. */
export class StoresAway extends StockadeError {
  /** Their names, one at least. */
  readonly stores: readonly string[];

  constructor(stores: readonly string[], options?: { cause?: unknown }) {
    super(
      'unavailable',
      `${stores.join(' and ')} ${stores.length === 1 ? 'does' : 'do'} not answer`,
      options,
    );
    this.stores = stores;
  }
}

/** An operation was given up although every store answers: it takes too long. It may have been done in part. */
export class OperationTimedOut extends StockadeError {
  constructor(operation: string, deadlineMs: number) {
    super(
      'unavailable',
      `${operation} was not done within ${deadlineMs / 1_000} s, although the stores answer`,
    );
  }
}

/** Its status is 500 or above if it is the node's fault and not the request's. */
export function failure(error: unknown): Reply {
  if (error instanceof InvalidInput) {
    return problem('invalid_request', { detail: error.message, faults: error.faults });
  }
  if (error instanceof WrongState)
    return problem('wrong_state', { detail: error.message, state: error.state });
  if (error instanceof StockadeError && error.code !== 'unavailable' && isProblemCode(error.code)) {
    return problem(error.code, { detail: error.message });
  }
  // The operator sees what is wrong; the public port never says.
  const reason = error instanceof Error ? error.message : String(error);
  const title = error instanceof StoresAway ? reason : 'This could not be done';
  const detail = `${reason}. A change may have been made all the same: look at the sale before you repeat it.`;
  return problem('unavailable', { title, detail });
}
