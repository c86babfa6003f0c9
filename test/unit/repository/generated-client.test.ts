import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { GENERATED, generate } from '../../../scripts/generate-client.mjs';
import { EVENT_KINDS } from '../../../src/events/event-kind.ts';
import { ORDER_STATUSES } from '../../../src/operations/order.ts';

test.each(GENERATED)('$to is what `npm run generate` makes of $from', ({ from, to, unlike }) => {
  expect(readFileSync(new URL(`../../../${to}`, import.meta.url), 'utf8')).toBe(generate(from, unlike));
});

test('the operators’ description has every status of an order', () => {
  const text = readFileSync(new URL('../../../docs/openapi-ops.json', import.meta.url), 'utf8');
  const { schemas, parameters } = JSON.parse(text).components;
  expect(schemas.Order.properties.status.enum).toEqual(ORDER_STATUSES);
  expect(parameters.queryStatus.description).toContain(ORDER_STATUSES.join(', '));
});

test('the operators’ description, and the docs, have every kind of event', () => {
  const kinds = Object.values(EVENT_KINDS);
  const fileOf = (path: string) => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), 'utf8');
  const { OrderEvent } = JSON.parse(fileOf('openapi-ops.json')).components.schemas;
  expect(OrderEvent.properties.kind.enum).toEqual(kinds);
  const told = [...fileOf('events.md').matchAll(/^\| `((?:order|offer)\.\w+)` \|/gm)].map(([, kind]) => kind);
  expect(told).toEqual(kinds);
});

test('the client runs in browsers: it imports only its own files, and uses no global of Node', () => {
  const folder = new URL('../../../src/client/', import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), 'utf8');
    expect(
      [...text.matchAll(/from '([^'.][^']*)'/g)].map(([, from]) => from),
      name,
    ).toEqual([]);
    expect(text, name).not.toMatch(/\b(Buffer|process|setImmediate|require|__dirname)\b[.(]/);
  }
  expect(files.length).toBeGreaterThan(4);
});
