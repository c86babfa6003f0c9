/** `GET /v1/sales/{saleId}/events`: the public facts about a sale whenever they change. */

import type { AddressOf } from '../server/client-address.ts';
import type { Handler } from '../server/exchange.ts';
import { pathIdOf } from '../server/http-request.ts';
import { headOf, type Reply } from '../server/replies/reply.ts';
import { noRoomFor } from '../streams/listeners.ts';
import { idOf, type LiveSales } from './live-sales.ts';
import type { SaleReads } from './sale-reads.ts';

const FULL = noRoomFor('sale');
/** A browser that listens connects again and again, until it is answered this. */
const NO_MORE: Reply = { status: 204, head: headOf(204, {}), body: '', isBodiless: true };

export function saleEventsRoute(
  reads: Pick<SaleReads, 'read'>,
  live: LiveSales,
  addressOf: AddressOf | undefined,
): Handler {
  return async (exchange, request) => {
    const saleId = pathIdOf(request);
    const lastEventId = request.getHeader('last-event-id');
    const address = addressOf?.(exchange, request);
    const found = await reads.read(saleId);
    if ('refusal' in found) exchange.reply(found.refusal);
    else if (found.isClosed && lastEventId === idOf(found.reply.tag)) exchange.reply(NO_MORE);
    else if (!live.admits(saleId, address)) exchange.reply(FULL);
    else exchange.replyPushed(live.listen(saleId, found, address));
  };
}
