import { StockadeError } from '../../engine/errors.ts';

const TEMPORARY = new Set(['unavailable', 'no_node', 'busy']);

/** Whether the error may be over in a moment: the node or a store does not answer. */
export function mayPass(error: unknown): boolean {
  return error instanceof StockadeError && TEMPORARY.has(error.code);
}
