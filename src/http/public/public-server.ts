import * as uWS from 'uWebSockets.js';
import { unambiguous } from '../identity/identity.ts';
import { Connections } from '../server/connections.ts';
import { Traffic } from '../server/exchange.ts';
import { type Listener, listen } from '../server/listener.ts';
import { type Gate, Router } from '../server/router.ts';
import { type OrderChangeHost, operatorsOnlyRoute, orderChangeRoute } from './order-change-route.ts';
import { orderRoute } from './order-route.ts';
import { type PurchaseHost, purchaseRoute } from './purchase-route.ts';
import { type SaleHost, saleRoute } from './sale-route.ts';
import { type TokenHost, tokenRoute } from './token-route.ts';

export type PublicHost = PurchaseHost &
  SaleHost &
  OrderChangeHost &
  TokenHost & {
    readonly gate: Gate | undefined;
    /** Buyers may pay and redeem their own orders here. */
    readonly publicPayment: boolean;
  };

/** The buyers' port. Any number of threads may serve the same one. */
export function servePublic(
  host: PublicHost,
  address: string,
  port: number,
  connections = new Connections(),
): Promise<Listener> {
  const app = uWS.App();
  const traffic = new Traffic(connections);
  // The purchase is the crowd's: it reads no more than it must.
  const careful = { ...host, authenticate: unambiguous(host.authenticate) };
  const payment = (kind: 'pay' | 'redeem') =>
    host.publicPayment ? orderChangeRoute(careful, kind) : operatorsOnlyRoute;
  new Router(app, host, traffic, host.gate)
    .hotRoute('post', '/v1/sales/:saleId/orders', purchaseRoute(host))
    .route('post', '/v1/sales/:saleId/tokens', tokenRoute(careful))
    .hotRoute('get', '/v1/sales/:saleId', saleRoute(host))
    .route('get', '/v1/orders/:orderId', orderRoute(careful))
    .route('post', '/v1/orders/:orderId/pay', payment('pay'))
    .route('post', '/v1/orders/:orderId/cancel', orderChangeRoute(careful, 'cancel'))
    .route('post', '/v1/orders/:orderId/redeem', payment('redeem'))
    .end();
  return listen(app, address, port, traffic);
}
