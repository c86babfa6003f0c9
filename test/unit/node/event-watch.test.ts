import { Registry } from 'prom-client';
import { afterEach, expect, test, vi } from 'vitest';
import { watchEvents } from '../../../src/node/observability/event-watch.ts';
import type { Log } from '../../../src/node/process/log.ts';

test('events that readers have missed are counted, with a warning from time to time', async () => {
  const warnings: unknown[][] = [];
  const registry = new Registry();
  const watch = watchEvents(
    { warn: (...args: unknown[]) => warnings.push(args) } as unknown as Log,
    registry,
  );
  watch.displaced({ events: 500, reachMs: 90_000, missed: [] });
  expect(warnings).toEqual([]);
  watch.displaced({ events: 500, reachMs: 60_000, missed: [{ group: 'mailer', events: 300 }] });
  watch.displaced({
    events: 500,
    reachMs: 30_000,
    missed: [
      { group: 'mailer', events: 500 },
      { group: 'cashier', events: 7 },
    ],
  });
  expect(warnings).toEqual([[{ missed: { mailer: 300 } }, expect.stringContaining('EVENTS_STREAM_MAX')]]);
  const metrics = await registry.metrics();
  expect(metrics).toMatch(/^stockade_events_missed_total 807$/m);
  expect(metrics).toMatch(/^stockade_events_stream_reach_seconds 30$/m);
});

afterEach(() => void vi.useRealTimers());

test('what was missed since the last warning is told later, also if the stream takes no more events', () => {
  vi.useFakeTimers();
  const warnings: unknown[][] = [];
  const log = { warn: (...args: unknown[]) => warnings.push(args) } as unknown as Log;
  const watch = watchEvents(log, new Registry());
  const nothing = { rows: 0, oldestMs: 0, pages: 0, oldestPageMs: 0, deadPages: 0 };
  for (const events of [256, 512])
    watch.displaced({ events, reachMs: 0, missed: [{ group: 'mailer', events }] });
  for (let second = 0; second < 30; second++) {
    vi.advanceTimersByTime(1_000);
    watch.waiting(nothing);
  }
  expect(warnings.map(([info]) => info)).toEqual([{ missed: { mailer: 256 } }, { missed: { mailer: 512 } }]);
});

test('rights that are missing are named', () => {
  const warnings: unknown[][] = [];
  const log = { warn: (...args: unknown[]) => warnings.push(args) } as unknown as Log;
  watchEvents(log, new Registry()).displaced({ events: 0, reachMs: 0, missed: [], unseen: 'NOPERM' });
  expect(warnings).toEqual([[{ reason: 'NOPERM' }, expect.stringContaining('redis-users.acl')]]);
});

test('a failure tells when events are tried again, or that they were given up, and whose it is', async () => {
  const lines: unknown[][] = [];
  const line = (...args: unknown[]) => void lines.push(args);
  const log = { warn: line, error: line } as unknown as Log;
  const registry = new Registry();
  const watch = watchEvents(log, registry, true);
  const error = new Error('not now');
  watch.postFailed({ error, events: 2, attempts: 1, retryMs: 500 });
  watch.postFailed({ error, events: 2, attempts: 2, retryMs: undefined });
  watch.gaveUp({ error, events: 2, attempts: 2, pages: ['17'] });
  expect(lines).toEqual([
    [
      { err: error, events: 2, attempts: 1, retryMs: 500 },
      'onOrderEvents did not accept order events; the relay will try again',
    ],
    [
      { err: error, events: 2, attempts: 2, pages: ['17'] },
      'order events became dead letters after the last attempt: list them with events.deadLetters()',
    ],
  ]);
  expect(await registry.metrics()).toMatch(/^stockade_webhook_failures_total 2$/m);
});
