/** `GET /v1/sales/{saleId}/orders` and `GET /v1/orders`: a buyer's own orders, in one sale and in all. */
import { InvalidInput } from '../../engine/errors.ts';
import { SALE_ID_PATTERN } from '../../engine/limits.ts';
import { queryValues } from '../../lib/url-query.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { OrderPage } from '../../operations/order-list.ts';
import { parseOwnQuery } from '../../operations/order-query.ts';
import { isPlace, type OwnPage, type OwnQuery } from '../../orders/own-orders.ts';
import { type Authenticate, refusal } from '../identity/identity.ts';
import { forBuyer } from '../orders/order-reply.ts';
import type { Handler, Observer } from '../server/exchange.ts';
import { failure } from '../server/failure.ts';
import { pathIdOf } from '../server/http-request.ts';
import { problem } from '../server/replies/problem.ts';
import { json, type Reply } from '../server/replies/reply.ts';

export interface OwnOrdersHost extends Observer {
  readonly authenticate: Authenticate;
  /** @returns `undefined` if there is no such sale. @throws Busy */
  ownOrdersOfSale(saleId: string, buyerId: string, query: OwnQuery): Promise<OwnPage | undefined>;
  /** @throws Busy */
  ownOrders(buyerId: string, query: OwnQuery): Promise<OrderPage>;
  readonly readDeadlineMs: number;
}

const UNREAD = {
  busy: problem('busy', { detail: 'The orders were not read. Send the request again.' }),
  failed: problem('unavailable', { detail: 'The orders can’t be read now. Send the request again.' }),
};

type Read = (saleId: string, buyerId: string, query: string) => Promise<Reply>;

export function ownOrdersOfSaleRoute(host: OwnOrdersHost): Handler {
  return ownRoute(host, async (saleId, buyerId, query) => {
    const wanted = parseOwnQuery(queryValues(query));
    if (!SALE_ID_PATTERN.test(saleId)) return problem('unknown_sale');
    const page = await host.ownOrdersOfSale(saleId, buyerId, wanted);
    if (!page) return problem('unknown_sale');
    const accepted = page.accepted.map((order) => ({ ...order, status: 'accepted' }));
    return json(200, { orders: [...accepted, ...page.orders.map(forBuyer)], next: page.next });
  });
}

export function ownOrdersRoute(host: OwnOrdersHost): Handler {
  return ownRoute(host, async (_, buyerId, query) => {
    const page = await host.ownOrders(buyerId, parseOwnQuery(queryValues(query), isPlace));
    return json(200, { orders: page.orders.map(forBuyer), next: page.next });
  });
}

function ownRoute(host: OwnOrdersHost, read: Read): Handler {
  return async (exchange, request) => {
    const saleId = pathIdOf(request);
    const query = request.getQuery();
    const identity = await host.authenticate(request);
    if (!('buyerId' in identity)) return exchange.reply(refusal(identity).reply);
    try {
      exchange.reply(await withTimeout(host.readDeadlineMs, read(saleId, identity.buyerId, query)));
    } catch (error) {
      if (error instanceof InvalidInput) return exchange.reply(invalid(error));
      exchange.reply(failure(host, error, UNREAD));
    }
  };
}

function invalid({ faults }: InvalidInput): Reply {
  return problem('invalid_request', {
    detail: faults.map(({ field, problem }) => `${field} ${problem}`).join('; '),
  });
}
