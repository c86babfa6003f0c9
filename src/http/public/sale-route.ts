/** `GET /v1/sales/{saleId}`: the public facts about a sale. */
import type { Handler } from '../server/exchange.ts';
import { pathIdOf } from '../server/http-request.ts';
import type { SaleReads } from './sale-reads.ts';

export function saleRoute(reads: SaleReads): Handler {
  return async (exchange, request) => {
    const saleId = pathIdOf(request);
    const ifNoneMatch = request.getHeader('if-none-match');
    const found = await reads.read(saleId);
    exchange.reply('refusal' in found ? found.refusal : found.reply.to(ifNoneMatch));
  };
}
