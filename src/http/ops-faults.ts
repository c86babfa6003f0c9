import { InvalidInput, StockadeError } from '../engine/errors.ts';
import { notAnswering, StoresAway } from '../sync/operation-faults.ts';
import { InsufficientStock, WrongState } from '../sync/operations.ts';
import { isProblemCode, problem, type Reply } from './problem.ts';

/** The answer of the ops port to an operation that has failed. Its status is 500 or above if it is the node's fault and not the request's. */
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
