/** Entries of a log, in which others may have written. */
import { describe, expect, it } from 'vitest';
import { BackendCorrupt } from '../../../../src/engine/errors.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { RawRead, Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import { RedisLog } from '../../../../src/engine/redis/redis-log.ts';
import type { RedisClient } from '../../../../src/redis/clients.ts';

const POSITION = { saleId: 'sale', segment: 0, generation: 1, seq: 0, tail: '' };
const ORDER = '598189304013662911';
const FIELDS = ['p', '', 'n', '1', 'o', `${ORDER} anna 2 key`];

const HEAD = ['1', '1', ORDER, '1', '0', 'open', null, null];

/** What is read of a log for which the script replies this. */
async function readRaw(raw: RawRead) {
  const scripts = { readLogs: async () => [raw] };
  const log = new RedisLog({} as RedisClient, scripts as unknown as Scripts, new Keys('p:'), () => {});
  const [read] = await log.readLog([POSITION], 10);
  return read!;
}

/** What is read of a log with one entry. */
const readOf = (fields: readonly string[], id = '1-1') => readRaw([null, HEAD, [[id, [...fields]]]]);

it('an entry has its orders, and notes of some', async () => {
  const order = { orderId: ORDER, buyerId: 'anna', quantity: 2, key: 'key' };
  const entry = { seq: 1, previous: '', tail: ORDER, ordersSoFar: 1 };
  expect((await readOf(FIELDS)).entries).toEqual([{ ...entry, orders: [order] }]);
  const note = '{"reference":"seat 7"}';
  expect((await readOf([...FIELDS, 'x', `${ORDER} ${note}`])).entries).toEqual([
    { ...entry, orders: [{ ...order, note }] },
  ]);
});

it.each([
  ['another first field', ['q', ...FIELDS.slice(1)], 'q, n, o'],
  ['another count', [...FIELDS.slice(0, 2), 'm', ...FIELDS.slice(3)], 'p, m, o'],
  ['other orders', [...FIELDS.slice(0, 4), 'r', FIELDS[5]!], 'p, n, r'],
  ['other notes', [...FIELDS, 'y', '1 {"reference":"seat 7"}'], 'p, n, o, y'],
  ['a field more', [...FIELDS, 'x', '', 'z', '1'], 'p, n, o, x, z'],
])('an entry with %s is a fault of its log, which names its fields', async (_, fields, names) => {
  const fault = `log entry 1-1 has the fields ${JSON.stringify(names)}`;
  expect(await readOf(fields)).toEqual({ position: POSITION, head: undefined, entries: [], fault });
});

it.each(['2-1', '11-1', '1', '-1'])(
  'an entry with the id %s is of another generation: a fault',
  async (id) => {
    expect((await readOf(FIELDS, id)).fault).toBe(`a log of generation 1 holds "${id}"`);
  },
);

describe('the orders that entries count', () => {
  /** What is read of entries with these numbers and counts, each of one order. */
  const readCounted = (...entries: [seq: number, count: number][]) =>
    readRaw([
      null,
      HEAD,
      entries.map(([seq, count]) => [`1-${seq}`, ['p', '', 'n', String(count), 'o', `${seq} anna 2 key`]]),
    ]);

  it.each<[string, [number, number][]]>([
    ['the first entry', [[1, 1]]],
    ['a later entry', [[8, 20]]],
    [
      'entries that follow each other',
      [
        [8, 20],
        [9, 21],
        [10, 22],
      ],
    ],
    [
      'entries with a gap, which sync checks',
      [
        [8, 20],
        [10, 30],
      ],
    ],
  ])('are those of %s', async (_, entries) => {
    const { fault, entries: found } = await readCounted(...entries);
    expect(fault).toBeUndefined();
    expect(found.map(({ seq, ordersSoFar }) => [seq, ordersSoFar])).toEqual(entries);
  });

  it.each<[string, [number, number][], string]>([
    ['fewer than the entry has', [[1, 0]], 'log entry 1-1 counts 0'],
    [
      'fewer than before and the entry has',
      [
        [8, 20],
        [9, 20],
      ],
      'log entry 1-9 counts 20',
    ],
    [
      'more than before and the entry has',
      [
        [8, 20],
        [9, 22],
      ],
      'log entry 1-9 counts 22',
    ],
    [
      'fewer than the entry has, behind a gap',
      [
        [8, 20],
        [10, 0],
      ],
      'log entry 1-10 counts 0',
    ],
  ])('are not %s', async (_, entries, fault) => {
    expect(await readCounted(...entries)).toEqual({
      position: POSITION,
      head: undefined,
      entries: [],
      fault,
    });
  });
});

describe('the head of a log', () => {
  const read = (changed: Record<number, string | null>) =>
    readRaw([null, HEAD.map((value, i) => (i in changed ? changed[i]! : value)), []]);
  const head = { seq: 1, tail: ORDER, orders: 1, committed: 0, state: 'open' };

  it.each<[string, Record<number, string | null>, object]>([
    ['a log of an older version', {}, head],
    ['a log without entries', { 2: '' }, { ...head, tail: '' }],
    ['a log with rules', { 6: 'r1' }, { ...head, rules: 'r1' }],
    ['a log that has lost entries', { 7: '9 3 12' }, { ...head, lost: { seq: 9, orders: 3, tail: '12' } }],
  ])('is read of %s', async (_, changed, expected) => {
    expect(await read(changed)).toStrictEqual({ position: POSITION, head: expected, entries: [] });
  });

  it.each<[string, Record<number, string | null>]>([
    ['a tail that is no order id', { 2: 'x' }],
    ['a mark of a loss with a word too many', { 7: '9 3 12 4' }],
    ['a mark of a loss with a word too few', { 7: '9' }],
    ['another state', { 5: 'ajar' }],
    ['no number', { 1: null }],
  ])('is a fault with %s', async (_, changed) => {
    expect(await read(changed)).toMatchObject({ head: undefined, entries: [], fault: expect.any(String) });
  });

  it('is missing in another generation', async () => {
    expect(await read({ 0: '2' })).toEqual({ position: POSITION, head: undefined, entries: [] });
  });
});

it('a log that can’t be read is a fault of its own', async () => {
  expect(await readRaw([new BackendCorrupt('WRONGTYPE no stream')])).toEqual({
    ...{ position: POSITION, head: undefined, entries: [], fault: 'WRONGTYPE no stream' },
  });
});

it('a failure of the program is no fault of a log', async () => {
  await expect(readRaw([null, undefined, []] as unknown as RawRead)).rejects.toThrow(TypeError);
  const failure = new Error('gone');
  await expect(readRaw([failure] as unknown as RawRead)).rejects.toBe(failure);
});
