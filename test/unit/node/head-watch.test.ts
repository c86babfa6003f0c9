import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { watchHead } from '../../../src/node/observability/head-watch.ts';
import type { Log } from '../../../src/node/process/log.ts';

test('what the head of the queues does is counted and logged', async () => {
  const lines: [string, unknown, string][] = [];
  const at = (level: string) => (info: unknown, text: string) => lines.push([level, info, text]);
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const registry = new Registry();
  const watch = watchHead(log as unknown as Log, registry);
  watch.offered({ saleId: 'x', offers: 3, units: 5 });
  watch.offered({ saleId: 'y', offers: 1, units: 1 });
  watch.passedOver({ saleId: 'x', absent: 2, limited: 0 });
  watch.delayed({ saleId: 'x', places: 4, outcome: 'unavailable' });
  watch.drawn({ saleId: 'x', entries: 9, tookMs: 1 });
  watch.saleFailed({ saleId: 'x', error: new Error('no') });
  watch.crashed({ error: new Error('away'), retryMs: 100 });
  const metrics = await registry.metrics();
  for (const line of [
    'stockade_queue_offers_total 4',
    'stockade_queue_offered_units_total 6',
    'stockade_queue_passed_places_total{why="absent"} 2',
    'stockade_queue_passed_places_total{why="limit"} 0',
    'stockade_queue_delayed_offers_total 4',
    'stockade_queue_failures_total 2',
  ])
    expect(metrics.split('\n')).toContain(line);
  expect(lines.map(([level]) => level)).toEqual(['debug', 'debug', 'info', 'warn', 'info', 'error', 'error']);
  expect(lines[5]![1]).toMatchObject({ saleId: 'x', err: expect.any(Error) });
});
