/** Consoles that show the same share its readings; what no open console shows is not read. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { InvalidInput } from '../../../src/engine/errors.ts';
import { ConsoleFeed } from '../../../src/node/console/console-feed.ts';
import type { NodeSources } from '../../../src/node/console/node-sources.ts';
import {
  countsByCode,
  placeCounts,
  placeRates,
  purchaseRates,
} from '../../../src/node/console/purchase-rates.ts';
import {
  type ConsolePicture,
  type ConsoleQuery,
  MAX_CONSOLES,
  parseConsoleQuery,
  TooManyConsoles,
} from '../../../src/operations/console/console-operations.ts';

const SALES: ConsoleQuery = { limit: 50 };
const TIMES = { everyMs: 10, totalsEveryMs: 10, readingMs: 5 };

/** Counts the readings of each part. */
class FakeSources implements NodeSources {
  readonly readings: string[] = [];
  /** Readings whose names begin with this never end; '': all end. */
  hanging = '';

  readonly node = () => this.#read('node', { connections: 0, queued: 0, waiting: 0 });
  readonly totals = () => this.#read('totals', []);
  readonly list = (query: object) => this.#read(`list ${JSON.stringify(query)}`, { sales: [] });
  readonly processes = () => ({ process: 'host:1', version: '1.0.0', others: [] });

  async detail(saleId: string): Promise<never> {
    this.readings.push(`sale ${saleId}`);
    throw new Error(`there is no sale ${saleId}`);
  }

  count(name: string): number {
    return this.readings.filter((reading) => reading.startsWith(name)).length;
  }

  async #read<T>(name: string, value: T): Promise<T> {
    this.readings.push(name);
    if (this.hanging !== '' && name.startsWith(this.hanging)) await new Promise(() => {});
    return value;
  }
}

let sources: FakeSources;
let feed: ConsoleFeed;

beforeEach(() => {
  sources = new FakeSources();
  feed = new ConsoleFeed(sources, TIMES);
});

afterEach(() => feed.stop());

const open = (query = SALES) => feed.watch(query)[Symbol.asyncIterator]();

/** Asks for each picture as soon as the one before is there. */
async function take(reader: AsyncIterator<ConsolePicture>, pictures: number): Promise<ConsolePicture> {
  for (let i = 1; i < pictures; i++) await reader.next();
  return (await reader.next()).value;
}

describe('consoles', () => {
  test('that show the same share one reading of each part', async () => {
    const readers = [open(), open(), open()];
    await Promise.all(readers.map((reader) => take(reader, 6)));
    expect(feed.consoles).toBe(3);
    for (const part of ['node', 'totals', 'list']) {
      expect(sources.count(part), part).toBeGreaterThanOrEqual(5);
      // The pictures of three consoles that share nothing would need 18.
      expect(sources.count(part), part).toBeLessThanOrEqual(7);
    }
  });

  test('that show different pages read each page', async () => {
    await Promise.all([take(open(), 4), take(open({ limit: 50, state: 'paused' }), 4)]);
    expect(sources.count('list {"limit":50}')).toBeGreaterThanOrEqual(3);
    expect(sources.count('list {"limit":50,"state":"paused"}')).toBeGreaterThanOrEqual(3);
  });

  test('that show no list read none', async () => {
    const picture = await take(open({ limit: 0 }), 3);
    expect(picture.list).toBeUndefined();
    expect(sources.count('list')).toBe(0);
  });

  test('that were closed cost nothing', async () => {
    const reader = open();
    await take(reader, 3);
    await reader.return?.();
    expect(feed.consoles).toBe(0);
    const before = sources.readings.length;
    // A feed with sources of its own shows how much time passes: that of six pictures.
    const other = new ConsoleFeed(new FakeSources(), TIMES);
    await take(other.watch(SALES)[Symbol.asyncIterator](), 6);
    other.stop();
    expect(sources.readings.length).toBe(before);
  });

  test('that read slowly get the newest picture, and none of those between', async () => {
    const [slow, fast] = [open(), open()];
    await slow.next();
    const last = await take(fast, 8);
    const next = await take(slow, 1);
    expect(Date.parse(next.at)).toBeGreaterThanOrEqual(Date.parse(last.at));
  });

  test('are limited in number', async () => {
    const readers = Array.from({ length: MAX_CONSOLES - 1 }, () => open());
    // Three begin together, and there is room for one.
    const late = [open(), open(), open()];
    await Promise.all(readers.map((reader) => reader.next()));
    const first = await Promise.all(late.map((reader) => reader.next()));
    expect(first.map(({ done }) => done)).toEqual([false, true, true]);
    expect(() => open()).toThrow(TooManyConsoles);
    await readers[0]!.return?.();
    expect((await open().next()).done).toBe(false);
  });

  test('end when the node stops', async () => {
    const reader = open();
    await reader.next();
    const next = reader.next();
    feed.stop();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(feed.consoles).toBe(0);
  });
});

describe('a part that can’t be read', () => {
  test('has the reason, and the other parts are read', async () => {
    const picture = await take(open({ limit: 50, saleId: 'gone' }), 2);
    expect(picture.detail).toEqual({ problem: 'there is no sale gone' });
    expect(picture.list).toMatchObject({ value: { sales: [] } });
  });

  test('is not read again while its reading goes on, and keeps its value', async () => {
    const reader = open();
    await take(reader, 2);
    sources.hanging = 'list';
    const before = sources.count('list');
    const first = await take(reader, 2);
    const second = await take(reader, 4);
    expect(sources.count('list') - before).toBe(1);
    expect(second.list!.value).toEqual({ sales: [] });
    expect(second.list!.ageMs!).toBeGreaterThan(first.list!.ageMs!);
  });
});

describe('the query', () => {
  test('asks for fifty sales by default', () => {
    expect(parseConsoleQuery({})).toEqual({ limit: 50 });
    expect(parseConsoleQuery({ limit: '0', saleId: 'tickets' })).toEqual({ limit: 0, saleId: 'tickets' });
  });

  test.each([
    { limit: '101' },
    { limit: '-1' },
    { saleId: '../x' },
    { state: 'odd' },
    { after: 'x' },
    { token: 'x' },
  ])('%j is refused', (query) => expect(() => parseConsoleQuery(query)).toThrow(InvalidInput));
});

describe('rates', () => {
  const worker = (latency: Record<string, number[]>) => ({
    latency: Object.fromEntries(
      Object.entries(latency).map(([code, buckets]) => [code, { buckets, sum: 0 }]),
    ),
    batches: { buckets: [], sum: 0 },
  });

  test('add up all workers, by the code of the answer', () => {
    const before = countsByCode([worker({ committed: [5] })]);
    const now = countsByCode([
      worker({ committed: [5, 10], sold_out: [100], busy: [2] }),
      worker({ accepted: [10], sold_out: [0, 100] }),
    ]);
    expect(purchaseRates(before, now, 2)).toEqual({
      purchases: 111,
      orders: 10,
      refusals: 100,
      failures: 1,
      byCode: { committed: 5, accepted: 5, sold_out: 100, busy: 1 },
    });
  });

  test('leave out codes that were not answered since', () => {
    const counts = countsByCode([worker({ committed: [5] })]);
    expect(purchaseRates(counts, counts, 1)).toEqual({
      purchases: 0,
      orders: 0,
      refusals: 0,
      failures: 0,
      byCode: {},
    });
  });
});

test('rates of places are those of all workers, by what buyers did', () => {
  const worker = (join: number, busy: number) => ({
    join: { waiting: join, queue_full: 1 },
    poll: { hopeless: 4, busy },
    listen: { waiting: 2 },
    leave: { unavailable: 1 },
  });
  const before = placeCounts([worker(1, 0), worker(0, 0)]);
  expect(before).toEqual({ joins: 3, polls: 8, failures: 2, all: 17 });
  const now = placeCounts([worker(11, 6), worker(0, 0)]);
  expect(placeRates(before, now, 2)).toEqual({ joins: 5, polls: 3, failures: 3 });
  // A worker that started again counts from zero.
  expect(placeRates(now, before, 2)).toEqual({ joins: 0, polls: 0, failures: 0 });
});
