import { StockadeError } from '../../engine/errors.ts';
import type { DeleteOperations } from '../../operations/delete-operations.ts';
import type { UnknownSale } from '../../operations/sale-operations.ts';
import { plural } from '../terminal/output.ts';

/** The error of a sale that is not there, with who deleted it if it was deleted. */
export async function goneSale(unknown: UnknownSale, sales: DeleteOperations): Promise<StockadeError> {
  // An old node does not know the request, and the error is true without the answer.
  const deletion = await sales.deletion(unknown.saleId).catch(() => undefined);
  if (deletion?.state !== 'deleting' && deletion?.state !== 'deleted') return unknown;
  const { orders, actor, reason } = deletion;
  const what = deletion.state === 'deleted' ? `was deleted at ${deletion.deletedAt}` : 'is being deleted';
  const why = reason === '' ? '' : ` (${reason})`;
  return new StockadeError(
    unknown.code,
    `${unknown.message}: it ${what} by ${actor}${why}, with ${plural(orders, 'order')}`,
    { cause: unknown },
  );
}
