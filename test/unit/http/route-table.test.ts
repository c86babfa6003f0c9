import { expect, test } from 'vitest';
import type { Serve } from '../../../src/http/server/http-server.ts';
import { RouteTable, valuesOf } from '../../../src/http/server/node-http/route-table.ts';

const serve: Serve = () => {};

/** Patterns beside each other, and the one of them that a path belongs to. */
function tableOf(...patterns: string[]) {
  const table = new RouteTable();
  const byServe = new Map<Serve, string>();
  for (const pattern of [...patterns, '/*']) {
    const own: Serve = () => {};
    byServe.set(own, pattern);
    table.add('get', pattern, own);
  }
  return (path: string) => {
    const segments = path.split('/');
    const route = table.find(segments);
    const pattern = byServe.get(route.serves.get('GET')!)!;
    return { pattern, values: pattern === '/*' ? [] : valuesOf(route, segments) };
  };
}

test.each([
  ['/v1/sales/a', '/v1/sales/:saleId', ['a']],
  ['/v1/sales/a/orders', '/v1/sales/:saleId/orders', ['a']],
  ['/v1/sales/%2F', '/v1/sales/:saleId', ['%2F']],
  // A fixed segment wins, in whichever order they were added.
  ['/v1/sales/due', '/v1/sales/due', []],
  ['/v1/sales/', '/*', []],
  ['/v1/sales//orders', '/*', []],
  ['/v1/sales/a/', '/*', []],
  ['/v1/Sales/a', '/*', []],
  ['/', '/*', []],
  ['*', '/*', []],
  ['http://localhost/v1/sales/a', '/*', []],
])('%s belongs to %s', (path, pattern, values) => {
  const find = tableOf('/v1/sales/:saleId', '/v1/sales/due', '/v1/sales/:saleId/orders');
  expect(find(path)).toEqual({ pattern, values });
});

test('a method without its own handler uses the general one', () => {
  const table = new RouteTable();
  const others: Serve = () => {};
  table.add('get', '/v1/sales/:saleId', serve);
  table.add('any', '/v1/sales/:saleId', others);
  const { serves } = table.find(['', 'v1', 'sales', 'a']);
  expect([serves.get('GET'), serves.get('POST'), serves.get('any')]).toEqual([serve, undefined, others]);
});
