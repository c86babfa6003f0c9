/** The routes of the ops port, as the code puts them there: a test that goes through them can't forget a new one. */
import type { TemplatedApp } from 'uWebSockets.js';
import { addOpsRoutes, type OpsHost } from '../../../src/http/ops/ops-server.ts';
import { Traffic } from '../../../src/http/server/exchange.ts';
import { Router } from '../../../src/http/server/router.ts';

export interface OpsRoute {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** As uWebSockets.js has it: `/v1/sales/:saleId`. */
  readonly pattern: string;
}

export function opsRoutes(): OpsRoute[] {
  // Nothing is called: which parts a host has decides which routes there are.
  const host = { token: '', operations: {}, orders: {}, events: {} } as unknown as OpsHost;
  const app: TemplatedApp = new Proxy({} as TemplatedApp, { get: () => () => app });
  const router = new Router(app, host, new Traffic());
  addOpsRoutes(router, host);
  return [...router.routes].flatMap(([pattern, methods]) =>
    methods.map((method) => ({ method: method.toUpperCase() as OpsRoute['method'], pattern })),
  );
}
