import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { watchSync } from '../../../src/node/observability/sync-watch.ts';

const registry = new Registry();
const events = watchSync(pino({ level: 'silent' }), registry);

/** Sync commits a transaction whose oldest order is that old. */
const apply = (oldestMs: number) => events.applied({ orders: 10, oldestMs, tookMs: 5 });

async function lagSeconds(): Promise<number> {
  const { values } = await registry.getSingleMetric('stockade_sync_lag_seconds')!.get();
  return values[0]!.value;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  events.backlog({ orders: 0 });
});

afterEach(() => {
  vi.useRealTimers();
});

test('watermarks that Redis does not accept are logged, but not each', () => {
  const lines: string[] = [];
  const told = watchSync(pino({}, { write: (line) => void lines.push(line) }), new Registry());
  for (let i = 0; i < 3; i++) told.untold({ error: new Error('NOPERM') });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0]!)).toMatchObject({
    err: { message: 'NOPERM' },
    msg: 'buyers can’t be told that their orders are committed',
  });
});

describe('the lag in seconds', () => {
  test('is the age of the oldest order that was applied last, also after a sweep that finds more', async () => {
    apply(700);
    expect(await lagSeconds()).toBe(0.7);
    events.backlog({ orders: 50 });
    expect(await lagSeconds()).toBe(0.7);
  });

  test('is how long orders have waited, while nothing is applied', async () => {
    events.backlog({ orders: 50 });
    vi.setSystemTime(Date.now() + 4_000);
    events.backlog({ orders: 50 });
    expect(await lagSeconds()).toBe(4);
    apply(5_000);
    expect(await lagSeconds()).toBe(5);
  });

  test('is zero after a sweep that finds an empty backlog', async () => {
    apply(700);
    events.backlog({ orders: 0 });
    expect(await lagSeconds()).toBe(0);
  });
});
