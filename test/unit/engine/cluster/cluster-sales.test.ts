/** What is done segment by segment on a cluster, and when it is refused. The test plays the servers. */
import type { Cluster } from 'ioredis';
import { describe, expect, it, vi } from 'vitest';
import { ClusterSales } from '../../../../src/engine/cluster/cluster-sales.ts';
import type { ExpectedSale, Sale } from '../../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../../src/engine/errors.ts';
import { AFTER_ALL_IDS } from '../../../../src/engine/limits.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { RawSnapshot, Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import { rulesOf } from '../../../../src/engine/sale/rules.ts';
import type { Command, Reply } from '../../../../src/redis/send-all.ts';
import { aSale } from '../../../support/shop/sales.ts';

const KEYS = new Keys('p:');
const replyError = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' });
type Fields = Record<string, string>;
type Content = Fields | Error;

/** Servers that hold the sale's segments and its record: fields, or the error with which they answer. */
function serving(sale: Sale, segments: Record<number, Content>, record: Content = {}) {
  const contents = new Map<string, Content>([[KEYS.sale(sale.id), record]]);
  for (const [segment, content] of Object.entries(segments))
    contents.set(KEYS.segment({ saleId: sale.id, segment: Number(segment) }).segment, content);
  const answer = ([name, key, ...fields]: Command): Reply => {
    const found = contents.get(String(key)) ?? {};
    if (found instanceof Error) return [found, undefined];
    if (name === 'hget') return [null, found[String(fields[0])] ?? null];
    expect(name).toBe('hmget');
    return [null, fields.map((field) => found[String(field)] ?? null)];
  };
  const scripts = {
    setState: vi.fn<(...args: unknown[]) => Promise<unknown>>(async () => 0),
    publishSale: vi.fn(async () => 1),
    removeSegments: vi.fn<(...args: unknown[]) => Promise<number | string>>(async () => 0),
    snapshot: vi.fn<(keys: string[]) => Promise<RawSnapshot[]>>(),
  };
  const chain = { incr: () => chain, publish: () => chain, exec: async () => [] };
  const cluster = { incr: async () => 1, publish: async () => 1, multi: () => chain, pipeline: () => chain };
  const sendAll = async (commands: readonly Command[]) => commands.map(answer);
  const sales = new ClusterSales(cluster as unknown as Cluster, scripts as unknown as Scripts, KEYS, sendAll);
  return { sales, scripts };
}

describe('the state of a sale on a cluster', () => {
  const sale = aSale({ segments: 2 });
  const keyOf = (segment: number) => KEYS.segment({ saleId: sale.id, segment }).segment;
  const inState = (state: string, generation = '3') => ({ generation, state, loadedUpTo: AFTER_ALL_IDS });
  const opened = { sale, state: 'open', generation: 3, rules: rulesOf(sale) } as const;

  it.each([
    ['open', 'setState', true],
    ['paused', 'setState', true],
    ['closed', 'setState', true],
    ['loaded', 'setState', false],
    ['frozen', 'setState', false],
    ['loaded', 'publish', true],
    ['open', 'publish', false],
    ['frozen', 'publish', false],
  ] as const)('of a segment that is %s: %s is possible: %j', async (state, change, isPossible) => {
    const usual = change === 'publish' ? 'loaded' : 'open';
    const { sales, scripts } = serving(sale, { 0: inState(usual), 1: inState(state) });
    if (isPossible) {
      await sales[change](opened);
      const rules = { rules: rulesOf(sale), limit: sale.perBuyerLimit, revision: 0 };
      expect(scripts.setState.mock.calls).toEqual(
        [0, 1].map((segment) => [[keyOf(segment)], 3, 'open', rules, change === 'publish']),
      );
      expect(scripts.publishSale).toHaveBeenCalledOnce();
    } else {
      await expect(sales[change](opened)).rejects.toThrow(StaleGeneration);
      // No segment is changed if one can't be.
      expect([scripts.setState.mock.calls, scripts.publishSale.mock.calls]).toEqual([[], []]);
    }
  });

  it.each([{ loadedUpTo: 'zoe' }, {}])(
    'is not published in any segment if one lacks buyers: it has %j',
    async (loaded) => {
      const lacking = { generation: '3', state: 'loaded', ...loaded };
      const { sales, scripts } = serving(sale, { 0: inState('loaded'), 1: lacking as Fields });
      await expect(sales.publish(opened)).rejects.toThrow(StaleGeneration);
      expect([scripts.setState.mock.calls, scripts.publishSale.mock.calls]).toEqual([[], []]);
    },
  );

  it.each<[string, Content]>([
    ['is of another generation', inState('open', '2')],
    ['is missing', {}],
  ])('is not changed if a segment %s', async (_, segment) => {
    const { sales, scripts } = serving(sale, { 0: inState('open'), 1: segment });
    await expect(sales.setState(opened)).rejects.toThrow(StaleGeneration);
    expect(scripts.setState).not.toHaveBeenCalled();
  });

  it('is not changed if a server does not answer', async () => {
    const error = new Error('Connection is closed.');
    const { sales, scripts } = serving(sale, { 0: inState('open'), 1: error });
    await expect(sales.setState(opened)).rejects.toBe(error);
    expect(scripts.setState).not.toHaveBeenCalled();
  });

  it('is not announced if a segment became stale meanwhile', async () => {
    const { sales, scripts } = serving(sale, { 0: inState('open'), 1: inState('open') });
    scripts.setState.mockResolvedValueOnce(0).mockResolvedValueOnce('stale');
    await expect(sales.setState(opened)).rejects.toThrow(StaleGeneration);
    expect(scripts.publishSale).not.toHaveBeenCalled();
  });

  it.each([
    [2, 7],
    [7, 2],
  ])(
    'is not announced if a segment has that of a later revision: they have %i and %i',
    async (...reached) => {
      const { sales, scripts } = serving(sale, { 0: inState('open'), 1: inState('open') });
      for (const revision of reached) scripts.setState.mockResolvedValueOnce(revision);
      expect(await sales.setState({ ...opened, revision: 2 })).toBe(7);
      expect(scripts.publishSale).not.toHaveBeenCalled();
    },
  );
});

it('segments are removed one by one, until a page has none', async () => {
  const { sales, scripts } = serving(aSale(), {});
  scripts.removeSegments.mockResolvedValueOnce(3).mockResolvedValueOnce(4);
  await sales.removeSegments({ saleId: 's', generation: 3 }, 5);
  const calls = scripts.removeSegments.mock.calls;
  expect(calls).toHaveLength(128);
  expect(calls.slice(0, 2)).toEqual(
    [5, 6].map((segment) => [[KEYS.segment({ saleId: 's', segment })], 3, 'all']),
  );
});

it('removing segments is refused if one of a page sells', async () => {
  const { sales, scripts } = serving(aSale(), {});
  scripts.removeSegments.mockResolvedValueOnce(3).mockResolvedValueOnce('stale');
  await expect(sales.removeSegments({ saleId: 's', generation: 3 }, 5, 'idle')).rejects.toThrow(
    StaleGeneration,
  );
  const calls = scripts.removeSegments.mock.calls;
  expect(calls).toHaveLength(64);
  expect(calls[0]).toEqual([[KEYS.segment({ saleId: 's', segment: 5 })], 3, 'idle']);
});

describe('a sale on a cluster is as Postgres expects it', () => {
  const sale = aSale({ segments: 2 });
  const expected: ExpectedSale = {
    saleId: sale.id,
    generation: 3,
    state: 'open',
    rules: 'r1',
    newest: [
      { seq: 4, tail: '40' },
      { seq: 5, tail: '50' },
    ],
  };
  const record = { generation: '3', state: 'open', rules: 'r1' };
  const first = { ...record, seq: '4', tail: '40', committed: '4' };
  const second = { ...record, seq: '5', tail: '50', committed: '5' };
  const matches = (segments: Record<number, Content>, of: Content = record) =>
    serving(sale, segments, of).sales.matches([expected]);

  it('if its record and all its segments say so', async () => {
    expect(await matches({ 0: first, 1: second })).toEqual([true]);
  });

  it.each<[string, Content, Content]>([
    ['the record is of another generation', { ...record, generation: '2' }, second],
    ['the record has another state', { ...record, state: 'paused' }, second],
    ['the record has other rules', { ...record, rules: 'r2' }, second],
    ['the record is missing', {}, second],
    ['a segment is of another generation', record, { ...second, generation: '2' }],
    ['a segment has another state', record, { ...second, state: 'paused' }],
    ['a segment has other rules', record, { ...second, rules: 'r2' }],
    ['a segment has other entries', record, { ...second, seq: '6', committed: '6' }],
    ['a segment has another tail', record, { ...second, tail: '51' }],
    ['an entry is not committed', record, { ...second, committed: '4' }],
    ['a segment is missing', record, {}],
    ['a key has another type', record, replyError('WRONGTYPE')],
  ])('but not if %s', async (_, of, segment) => {
    expect(await matches({ 0: first, 1: segment }, of)).toEqual([false]);
  });

  it('which is unknown while a server does not answer', async () => {
    await expect(matches({ 0: first, 1: new Error('Connection is closed.') })).rejects.toThrow('closed');
  });
});

describe('a snapshot of a sale on a cluster', () => {
  const sale = aSale({ segments: 2 });
  /** left, seq, committed, taken, orders, supplied, the withdrawal and an open transfer */
  const values = (left: number, supplied: number, out = '') => [
    String(left),
    '0',
    '0',
    '0',
    '0',
    String(supplied),
    '',
    out,
  ];

  it('is read until no units were supplied between two reads, and counts units on their way', async () => {
    const { sales, scripts } = serving(sale, { 1: { 'from:0': '1' } });
    const reads = [
      [values(5, 5), values(4, 4)],
      [values(3, 3, '2 1 2'), values(4, 4)],
      [values(2, 3, '2 1 2'), values(4, 4)],
    ];
    for (const read of reads) for (const one of read) scripts.snapshot.mockResolvedValueOnce([one]);
    const found = await sales.snapshot(sale.id, 2, 3);
    expect(found.map(({ counters }) => [counters!.left, counters!.inTransit])).toEqual([
      [2, 2],
      [4, 0],
    ]);
    expect(scripts.snapshot).toHaveBeenCalledTimes(6);
    expect(scripts.snapshot.mock.calls[1]).toEqual([
      [KEYS.segment({ saleId: sale.id, segment: 1 }).segment],
      3,
    ]);
  });

  it('is read again when units arrive', async () => {
    const segments: Record<number, Fields> = { 1: { 'from:0': '1' } };
    const { sales, scripts } = serving(sale, segments);
    let reads = 0;
    scripts.snapshot.mockImplementation(async ([key]) => {
      if (key === KEYS.segment({ saleId: sale.id, segment: 0 }).segment && ++reads === 2)
        segments[1]!['from:0'] = '2';
      return [values(3, 3, '2 1 2')];
    });
    await sales.snapshot(sale.id, 1, 3);
    expect(reads).toBe(3);
  });

  it('names segments that are missing', async () => {
    const { sales, scripts } = serving(sale, {});
    scripts.snapshot.mockResolvedValue([null]);
    expect(await sales.snapshot(sale.id, 1, 3)).toEqual([{ segment: 0, counters: undefined }]);
  });
});
