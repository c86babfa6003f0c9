import type { StreamBound } from '../../admission/stream-bound.ts';
import { addDescriptionRoutes } from '../description/description-routes.ts';
import { unambiguous } from '../identity/identity.ts';
import type { AddressOf } from '../server/client-address.ts';
import { Connections } from '../server/connections.ts';
import type { Cors } from '../server/cors.ts';
import type { ListenOptions, OpenHttpServer } from '../server/http-server.ts';
import type { Listener } from '../server/listener.ts';
import { type Gate, Router } from '../server/router.ts';
import { Traffic } from '../server/traffic.ts';
import { type ListenerCounts, Listeners } from '../streams/listeners.ts';
import { LiveSales } from './live-sales.ts';
import { type OrderChangeHost, operatorsOnlyRoute, orderChangeRoute } from './order-change-route.ts';
import { orderRoute } from './order-route.ts';
import { type OwnOrdersHost, ownOrdersOfSaleRoute, ownOrdersRoute } from './own-orders-route.ts';
import { LivePlaces } from './place/live-places.ts';
import { joinRoute, leaveRoute, type PlaceHost, placeEventsRoute, placeRoute } from './place/place-route.ts';
import { type PurchaseHost, purchaseRoute } from './purchase-route.ts';
import { saleEventsRoute } from './sale-events-route.ts';
import { type SaleHost, SaleReads } from './sale-reads.ts';
import { saleRoute } from './sale-route.ts';
import { type TokenHost, tokenRoute } from './token-route.ts';

/** How many streams one address may have, and which address a request comes from. */
export interface StreamLimit {
  readonly bound: StreamBound;
  readonly addressOf: AddressOf;
}

export type PublicHost = PurchaseHost &
  SaleHost &
  OrderChangeHost &
  OwnOrdersHost &
  TokenHost &
  PlaceHost & {
    readonly gate: Gate | undefined;
    /** `undefined`: one address may have all streams. */
    readonly streamLimit?: StreamLimit | undefined;
    /** Which pages of other origins may read answers; `undefined`: none. */
    readonly cors: Cors | undefined;
    /** Whether buyers may pay and redeem their own orders here. */
    readonly publicPayment: boolean;
  };

export interface PublicListener extends Listener {
  /** Those who listen to sales and places. */
  listeners(): ListenerCounts;
  /** Those of them who listen to places. */
  placeListeners(): number;
}

const THIS_PORT =
  'This is the public port, for buyers. The routes of operators are on the ops port (OPS_PORT of the node).';

/** Serves the public port. Any number of threads may serve the same one. */
export async function servePublic(
  host: PublicHost,
  open: OpenHttpServer,
  place: ListenOptions,
  connections = new Connections(),
): Promise<PublicListener> {
  const reads = new SaleReads(host);
  const listeners = new Listeners(connections.mostHeld, host.streamLimit?.bound);
  const addressOf = host.streamLimit?.addressOf;
  const live = new LiveSales(reads, listeners);
  const livePlaces = new LivePlaces(host, listeners);
  // There are very many purchases, so they skip this check, which goes through all headers.
  const strict = { ...host, authenticate: unambiguous(host.authenticate) };
  const payment = (kind: 'pay' | 'redeem') =>
    host.publicPayment ? orderChangeRoute(strict, kind) : operatorsOnlyRoute;
  const router = new Router(open, host, new Traffic(connections), host.gate, host.cors)
    .hotRoute('post', '/v1/sales/:saleId/orders', purchaseRoute(host))
    .route('post', '/v1/sales/:saleId/tokens', tokenRoute(strict))
    .route('post', '/v1/sales/:saleId/place', joinRoute(strict))
    .route('get', '/v1/sales/:saleId/place', placeRoute(strict))
    .route('delete', '/v1/sales/:saleId/place', leaveRoute(strict))
    .route('get', '/v1/sales/:saleId/place/events', placeEventsRoute(strict, livePlaces, addressOf))
    .hotRoute('get', '/v1/sales/:saleId', saleRoute(reads))
    .route('get', '/v1/sales/:saleId/events', saleEventsRoute(reads, live, addressOf))
    .route('get', '/v1/sales/:saleId/orders', ownOrdersOfSaleRoute(strict))
    .route('get', '/v1/orders', ownOrdersRoute(strict))
    .route('get', '/v1/orders/:orderId', orderRoute(strict))
    .route('post', '/v1/orders/:orderId/pay', payment('pay'))
    .route('post', '/v1/orders/:orderId/cancel', orderChangeRoute(strict, 'cancel'))
    .route('post', '/v1/orders/:orderId/redeem', payment('redeem'));
  addDescriptionRoutes(router, 'public');
  const listener = await router.listen(place, THIS_PORT);
  return {
    ...listener,
    listeners: () => listeners.counts(),
    placeListeners: () => livePlaces.open,
    drain(graceMs) {
      listeners.stop();
      return listener.drain(graceMs);
    },
  };
}
