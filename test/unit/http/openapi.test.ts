/** The descriptions of both ports say what the program does: every route, every code, and what docs/api/ says. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { type OpsHost, serveOps } from '../../../src/http/ops/ops-server.ts';
import { type PublicHost, servePublic } from '../../../src/http/public/public-server.ts';
import { PROBLEM_CODES, problem } from '../../../src/http/server/problem.ts';
import { ApiDescription } from '../../fuzz/description.ts';

const routes = vi.hoisted(() => [] as string[]);

vi.mock('uWebSockets.js', () => {
  const noted = (method: string) => (pattern: string) => routes.push(`${method} ${pattern}`);
  const app = {
    ...{ get: noted('GET'), post: noted('POST'), patch: noted('PATCH'), any: () => {}, filter: () => {} },
    listen: (_host: string, _port: number, done: (socket: object) => void) => done({}),
  };
  return { App: () => app, us_socket_local_port: () => 1 };
});

const API = new URL('../../../docs/api/', import.meta.url);
const api = readdirSync(API)
  .map((name) => readFileSync(new URL(name, API), 'utf8'))
  .join('\n');
const ports = { public: ApiDescription.read('public'), ops: ApiDescription.read('ops') };
const all = [...ports.public.operations, ...ports.ops.operations];

/** What a server registers; nobody asks it anything. */
async function routesOf(serve: () => Promise<unknown>): Promise<string[]> {
  routes.length = 0;
  await serve();
  return routes.map((route) => route.replaceAll(/:(\w+)/g, '{$1}')).sort();
}

test.each([
  ['public', () => servePublic({} as PublicHost, 'localhost', 1)],
  ['ops', () => serveOps({ token: '', operations: {}, orders: {}, events: {} } as OpsHost, 'localhost', 1)],
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
    [...api.matchAll(/\b(GET|POST|PATCH) +(\/[\w/{}.-]*)/g)].map(([, m, p]) => `${m} ${p}`),
  );
  expect(all.map(({ method, path }) => `${method} ${path}`).filter((route) => !written.has(route))).toEqual(
    [],
  );
});
