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
