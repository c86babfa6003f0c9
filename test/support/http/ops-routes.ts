/** The routes of the ops port as the code registers them, so that a test of all routes can't miss a new one. */
import { addOpsRoutes, type OpsHost } from '../../../src/http/ops/ops-server.ts';
import type { OpenHttpServer } from '../../../src/http/server/http-server.ts';
import { Router } from '../../../src/http/server/router.ts';
import { Traffic } from '../../../src/http/server/traffic.ts';

export interface OpsRoute {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The pattern, such as `/v1/sales/:saleId`. */
  readonly pattern: string;
}

export function opsRoutes(): OpsRoute[] {
  // Nothing is called; which operations the host has decides which routes there are.
  const host = {
    token: '',
    sales: {},
    queues: {},
    orders: {},
    buyers: {},
    events: {},
    console: {},
  } as unknown as OpsHost;
  const open: OpenHttpServer = () => ({ hasCheapHeaderScan: true, on() {}, listen: () => Promise.reject() });
  const router = new Router(open, host, new Traffic());
  addOpsRoutes(router, host);
  return [...router.routes].flatMap(([pattern, methods]) =>
    methods.map((method) => ({ method: method.toUpperCase() as OpsRoute['method'], pattern })),
  );
}
