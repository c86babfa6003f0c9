/** The operators' port: sales, orders, verify, health and metrics. */

import * as uWS from 'uWebSockets.js';
import { createHash, timingSafeEqual } from 'node:crypto';
import { InvalidInput } from '../../engine/errors.ts';
import { parseActor } from '../../engine/sale/author.ts';
import { parseChange } from '../../engine/sale/sale-change.ts';
import { within } from '../../lib/with-timeout.ts';
import type { EventOperations } from '../../operations/event-operations.ts';
import type { OrderOperations } from '../../operations/order-operations.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import { unauthenticated } from '../identity/unauthenticated.ts';
import { type Exchange, type Handler, type Observer, Traffic } from '../server/exchange.ts';
import { type Listener, listen } from '../server/listener.ts';
import { headOf, json, type Reply } from '../server/problem.ts';
import { Router } from '../server/router.ts';
import { addEventRoutes } from './ops-events.ts';
import { failure, isFault } from './ops-faults.ts';
import { addOrderRoutes } from './ops-orders.ts';
import { addRebalanceRoute } from './ops-rebalance.ts';
import { addRecoverRoutes } from './ops-recover.ts';
import { addVerifyRoute } from './ops-verify.ts';

export interface OpsHost extends Observer {
  readonly token: string;
  /** Each ends by itself, whatever the stores do. Missing where there is nothing to operate: those routes are not there. */
  readonly operations?: SaleOperations;
  readonly orders?: OrderOperations;
  readonly events?: EventOperations;
  /** The metrics in Prometheus' text format. */
  metrics(): Promise<string>;
  /** Settings that must be the same in all processes of the shop and are not, with how many others of how many differ. */
  settingsDiffer(): readonly {
    readonly setting: string;
    readonly processes: readonly unknown[];
    readonly of: number;
  }[];
  /** Why the process can't do its work now; `undefined` if it can. Answers in bounded time. */
  notReady(): Promise<string | undefined>;
}

const MAX_OPS_BODY_BYTES = 65_536;
/** A scraper does not wait longer. */
const METRICS_DEADLINE_MS = 8_000;
/** Who has the token and gives no name. */
const UNNAMED_OPERATOR = 'ops token';

const TOKEN_FORM = 'Authorization must be "Bearer <OPS_TOKEN>"';
const NO_TOKEN = unauthenticated('Bearer', { reason: 'missing', detail: TOKEN_FORM });
const WRONG_TOKEN = unauthenticated('Bearer', { reason: 'invalid', detail: TOKEN_FORM });

/** `id`: the part of the path that varies. `operator`: who asks, by his own word. `query`: as it stands in the address. */
export type Action = (id: string, body: unknown, operator: string, query: string) => Promise<Reply>;
/** `optional`: a request without a body is the action's `undefined`. */
export type Guarded = (action: Action, hasBody?: boolean | 'optional') => Handler;

export function serveOps(host: OpsHost, address: string, port: number): Promise<Listener> {
  const app = uWS.App();
  const traffic = new Traffic();
  const router = new Router(app, host, traffic);
  addOpsRoutes(router, host);
  router.end();
  return listen(app, address, port, traffic);
}

/** Health is for everybody who reaches the port; all else is behind the token. */
export function addOpsRoutes(router: Router, host: OpsHost): void {
  const guarded = guard(host);
  router
    .route('get', '/healthz', (exchange) => exchange.reply(json(200, { status: 'ok' })))
    .route('get', '/readyz', async (exchange) => exchange.reply(await readiness(host)))
    .route(
      'get',
      '/metrics',
      guarded(async () => text(await within(METRICS_DEADLINE_MS, host.metrics()))),
    );
  if (host.operations) {
    addSaleRoutes(router, host.operations, guarded);
    addRebalanceRoute(router, host.operations, guarded);
    addRecoverRoutes(router, host.operations, guarded);
    addVerifyRoute(router, host.operations, guarded);
  }
  if (host.orders) addOrderRoutes(router, host.orders, guarded);
  if (host.events) addEventRoutes(router, host.events, guarded);
}

function addSaleRoutes(router: Router, operations: SaleOperations, guarded: Guarded): void {
  router
    .route(
      'get',
      '/v1/sales',
      guarded(async () => json(200, { sales: await operations.list() })),
    )
    .route(
      'post',
      '/v1/sales',
      guarded(async (_, body, actor) => json(201, await operations.create(body, actor)), true),
    )
    .route(
      'get',
      '/v1/sales/:saleId',
      guarded(async (id) => json(200, await operations.show(id))),
    )
    .route(
      'patch',
      '/v1/sales/:saleId',
      guarded(async (id, body, actor) => {
        const { change, reason } = parseChange(body);
        return json(200, await operations.change(id, change, { actor, reason }));
      }, true),
    )
    .route(
      'get',
      '/v1/sales/:saleId/ledger',
      guarded(async (id) => json(200, { ledger: await operations.ledger(id) })),
    );
}

/** Wraps an action: the token first, then the body if it has one, then its errors as problems. */
function guard(host: OpsHost): Guarded {
  const expected = digest(`Bearer ${host.token}`);
  return (action, hasBody = false) =>
    (exchange, request) => {
      const id = request.getParameter(0) ?? '';
      const query = request.getQuery();
      if (!timingSafeEqual(digest(request.getHeader('authorization')), expected)) {
        exchange.reply(request.getHeader('authorization') === '' ? NO_TOKEN : WRONG_TOKEN);
        return;
      }
      const operator = request.getHeader('x-operator') || UNNAMED_OPERATOR;
      if (!hasBody) return answer(host, exchange, () => action(id, undefined, operator, query));
      exchange.readBody(
        request,
        (body) => {
          if ('refused' in body) return exchange.reply(body.refused);
          const isMissing = hasBody === 'optional' && body.text === '';
          const parsed = () => (isMissing ? undefined : parse(body.text));
          void answer(host, exchange, () => action(id, parsed(), parseActor(operator), query));
        },
        MAX_OPS_BODY_BYTES,
      );
    };
}

async function answer(host: OpsHost, exchange: Exchange, action: () => Promise<Reply>): Promise<void> {
  try {
    exchange.reply(await action());
  } catch (error) {
    const reply = failure(error);
    exchange.reply(reply);
    if (isFault(error, reply)) host.fault(error);
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new InvalidInput('the body is not valid', [{ field: 'body', problem: 'must be JSON' }]);
  }
}

/** Other settings are no reason not to sell: while they are changed node by node, no node would be ready. */
async function readiness(host: OpsHost): Promise<Reply> {
  const reason = await host.notReady();
  if (reason !== undefined) return notReady(reason);
  const differing = host.settingsDiffer().map((each) => ({ ...each, processes: each.processes.length }));
  return json(200, { status: 'ready', ...(differing.length > 0 && { settingsDiffer: differing }) });
}

const RETRY_LATER = { 'content-type': 'application/json', 'retry-after': '1' };

function notReady(reason: string): Reply {
  return {
    status: 503,
    head: headOf(503, RETRY_LATER),
    body: JSON.stringify({ status: 'not ready', reason }),
  };
}

function text(body: string): Reply {
  return {
    status: 200,
    head: headOf(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
    body,
  };
}

function digest(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}
