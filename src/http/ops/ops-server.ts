/** The operators' port: sales, orders, verify, health and metrics. */

import { withTimeout } from '../../lib/with-timeout.ts';
import type { BuyerOperations } from '../../operations/buyer-operations.ts';
import type { ConsoleOperations } from '../../operations/console/console-operations.ts';
import type { EventOperations } from '../../operations/event-operations.ts';
import type { OrderOperations } from '../../operations/order-operations.ts';
import type { QueueOperations } from '../../operations/queue/queue-operations.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import { addDescriptionRoutes } from '../description/description-routes.ts';
import { Connections } from '../server/connections.ts';
import type { Observer } from '../server/exchange.ts';
import type { ListenOptions, OpenHttpServer } from '../server/http-server.ts';
import type { Listener } from '../server/listener.ts';
import { headOf, json, type Reply } from '../server/replies/reply.ts';
import { Router } from '../server/router.ts';
import { Traffic } from '../server/traffic.ts';
import { addBuyerRoutes } from './buyer-routes.ts';
import { addConsoleRoutes } from './console-routes.ts';
import { addEventRoutes } from './event-routes.ts';
import { guard } from './guard.ts';
import { notReadyReply } from './not-ready.ts';
import { addOrderRoutes } from './order-routes.ts';
import { addQueueRoutes } from './queue-routes.ts';
import { addSaleRoutes } from './sale-routes.ts';
import { addStockRoutes } from './stock-routes.ts';

export interface OpsHost extends Observer {
  readonly token: string;
  /**
   * Every operation ends in bounded time, whatever the stores do. A process that can't serve a group of operations leaves it
   * out, and has no routes for it.
   */
  readonly sales?: SaleOperations;
  readonly queues?: QueueOperations;
  readonly orders?: OrderOperations;
  readonly buyers?: BuyerOperations;
  readonly events?: EventOperations;
  readonly console?: ConsoleOperations;
  /** The metrics in Prometheus' text format. */
  metrics(): Promise<string>;
  /**
   * Settings that must be the same in all processes of the shop and are not. `processes` are the others whose value differs,
   * `of` is how many others there are.
   */
  settingsDiffer(): readonly {
    readonly setting: string;
    readonly processes: readonly unknown[];
    readonly of: number;
  }[];
  /** Why the process can't do its work now; `undefined` if it can. Answers in bounded time. */
  notReady(): Promise<string | undefined>;
}

/** Below the 10 s after which Prometheus gives up a scrape by default. */
const METRICS_DEADLINE_MS = 8_000;

const OF_A_NODE = 'This is the ops port, for operators. The routes of buyers are on the public port.';
const OF_SYNC =
  'This is the port of a `stockade sync`, for health and metrics. The routes of operators are on the ops port of a node.';

/**
 * Whoever reaches the port may connect without a token, also another user of this machine. Each connection is an open file, which
 * buyers' connections need too. Fifty consoles hold one each.
 */
const MAX_OPS_CONNECTIONS = 96;

export function serveOps(host: OpsHost, open: OpenHttpServer, place: ListenOptions): Promise<Listener> {
  const router = new Router(open, host, new Traffic(new Connections(MAX_OPS_CONNECTIONS)));
  addOpsRoutes(router, host);
  return router.listen(place, host.sales ? OF_A_NODE : OF_SYNC);
}

/** Health, the description, and the files of the console's page are answered without a token; every other route needs it. */
export function addOpsRoutes(router: Router, host: OpsHost): void {
  const guarded = guard(host);
  router
    .route('get', '/healthz', (exchange) => exchange.reply(json(200, { status: 'ok' })))
    .route('get', '/readyz', async (exchange) => exchange.reply(await readiness(host)))
    .route(
      'get',
      '/metrics',
      guarded(async () => text(await withTimeout(METRICS_DEADLINE_MS, host.metrics()))),
    );
  if (host.sales) addSaleRoutes(router, host.sales, guarded);
  if (host.sales) addStockRoutes(router, host.sales, guarded);
  if (host.queues) addQueueRoutes(router, host.queues, guarded);
  if (host.orders) addOrderRoutes(router, host.orders, guarded);
  if (host.buyers) addBuyerRoutes(router, host.buyers, guarded);
  if (host.events) addEventRoutes(router, host.events, guarded);
  if (host.console) addConsoleRoutes(router, host.console, guarded);
  addDescriptionRoutes(router, 'ops');
}

/** Differing settings don't make a node unready: otherwise no node would be ready while they are changed node by node. */
async function readiness(host: OpsHost): Promise<Reply> {
  const reason = await host.notReady();
  if (reason !== undefined) return notReadyReply(reason);
  const differing = host.settingsDiffer().map((each) => ({ ...each, processes: each.processes.length }));
  return json(200, { status: 'ready', ...(differing.length > 0 && { settingsDiffer: differing }) });
}

function text(body: string): Reply {
  return {
    status: 200,
    head: headOf(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
    body,
  };
}
