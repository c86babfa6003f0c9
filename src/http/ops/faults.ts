import { InvalidInput, StockadeError } from '../../engine/errors.ts';
import { MetRebuild, notAnswering, StoresAway } from '../../operations/operation-faults.ts';
import { InsufficientStock, WrongState } from '../../operations/sale-operations.ts';
import { isProblemCode, problem, type Reply } from '../server/problem.ts';

/**
 * The answer of the ops port to an operation that has failed. Its status is 500 or above if it is the node's fault and not
 * the request's.
 */
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
  return problem('unavailable', { title: titleOf(error), detail });
}

function titleOf(error: unknown): string {
  if (error instanceof StoresAway) return notAnswering(error.stores);
  return error instanceof MetRebuild ? 'The sale is being built anew' : 'This could not be done';
}

/** Whether somebody should look at what has failed with this answer. */
export function isFault(error: unknown, { status }: Reply): boolean {
  return status >= 500 && !(error instanceof MetRebuild);
}
