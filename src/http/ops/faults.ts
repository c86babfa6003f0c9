import { InvalidInput, isBusy, StockadeError } from '../../engine/errors.ts';
import { OrdersDiffer } from '../../operations/delete-operations.ts';
import { MetRebuild, plainMessage } from '../../operations/operation-faults.ts';
import { InsufficientStock, WrongState } from '../../operations/sale-operations.ts';
import { problem } from '../server/replies/problem.ts';
import { isProblemCode } from '../server/replies/problem-kinds.ts';
import type { Reply } from '../server/replies/reply.ts';

/**
 * The answer of the ops port to a failed operation. The status is 500 or above if the cause is the node or its stores, and
 * below if the cause is the request.
 */
export function failure(error: unknown): Reply {
  if (error instanceof InvalidInput) {
    return problem('invalid_request', { detail: error.message, faults: error.faults });
  }
  if (error instanceof WrongState)
    return problem('wrong_state', { detail: error.message, state: error.state });
  if (error instanceof InsufficientStock)
    return problem('insufficient_stock', { detail: error.message, remaining: error.remaining });
  if (error instanceof OrdersDiffer)
    return problem('orders_differ', { detail: error.message, orders: error.orders });
  if (error instanceof StockadeError && error.code !== 'unavailable' && isProblemCode(error.code)) {
    return problem(error.code, { detail: error.message });
  }
  // Operators see the error's message. The public port never shows it.
  const detail = error instanceof Error ? plainMessage(error) : String(error);
  return problem('unavailable', { detail });
}

/** Whether the failure behind this answer should be reported to the node's log. That other work is under way is no fault. */
export function isFault(error: unknown, { status }: Reply): boolean {
  return status >= 500 && !(isBusy(error) || error instanceof MetRebuild);
}
