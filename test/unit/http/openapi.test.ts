/** The descriptions of both ports say what the program does: every route, every code, and what docs/api/ says. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type OpsHost, serveOps } from '../../../src/http/ops/ops-server.ts';
import { type PublicHost, servePublic } from '../../../src/http/public/public-server.ts';
import type { OpenHttpServer } from '../../../src/http/server/http-server.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { PROBLEM_CODES } from '../../../src/http/server/replies/problem-kinds.ts';
import { ApiDescription } from '../../fuzz/description.ts';

const API = new URL('../../../docs/api/', import.meta.url);
const api = readdirSync(API)
  .map((name) => readFileSync(new URL(name, API), 'utf8'))
  .join('\n');
const ports = { public: ApiDescription.read('public'), ops: ApiDescription.read('ops') };
const all = [...ports.public.operations, ...ports.ops.operations];

const OPS = { token: '', sales: {}, queues: {}, orders: {}, buyers: {}, events: {}, console: {} } as OpsHost;
const PLACE = { host: 'localhost', port: 1, isShared: false };
const LISTENER = { port: 1, underWay: () => 0, stopListening() {}, drain: async () => {} };

/** The routes that a port registers. No requests are sent to it. */
async function routesOf(serve: (open: OpenHttpServer) => Promise<unknown>): Promise<string[]> {
  const routes: string[] = [];
  await serve(() => ({
    hasCheapHeaderScan: true,
    on(method, pattern) {
      if (method !== 'any') routes.push(`${method.toUpperCase()} ${pattern.replaceAll(/:(\w+)/g, '{$1}')}`);
    },
    listen: async () => LISTENER,
  }));
  return routes.sort();
}

test.each([
  ['public', (open: OpenHttpServer) => servePublic({} as PublicHost, open, PLACE)],
  ['ops', (open: OpenHttpServer) => serveOps(OPS, open, PLACE)],
] as const)('the %s port has the routes that are described, and no other', async (port, serve) => {
  const described = ports[port].operations.map(({ method, path }) => `${method} ${path}`);
  expect(described.sort()).toEqual(await routesOf(serve));
});

test('every code of the program is described, with its status', () => {
  const described = all.flatMap(({ codes }) =>
    [...codes].flatMap(([status, of]) => of.map((c) => [c, status])),
  );
  const commonCodes = ['not_found', 'method_not_allowed'];
  expect([...new Set([...described.map(([code]) => code), ...commonCodes])].sort()).toEqual(
    [...PROBLEM_CODES].sort(),
  );
  for (const [code, status] of described) expect(problem(code as never).status, `${code}`).toBe(status);
  for (const { codes } of Object.values(ports)) expect(codes).toEqual(expect.arrayContaining(commonCodes));
  expect([...new Set([...ports.public.codes, ...ports.ops.codes])].sort()).toEqual([...PROBLEM_CODES].sort());
});

test('docs/api/ has every route', () => {
  const written = new Set(
    [...api.matchAll(/\b(GET|POST|PATCH|DELETE) +(\/[\w/{}.-]*)/g)].map(([, m, p]) => `${m} ${p}`),
  );
  expect(all.map(({ method, path }) => `${method} ${path}`).filter((route) => !written.has(route))).toEqual(
    [],
  );
});
