/** What other processes and other versions read: names of keys, messages, the fields of a sale. */
import { describe, expect, it } from 'vitest';
import { BackendCorrupt } from '../../../../src/engine/errors.ts';
import { MAX_HANDED_OVER, MAX_SEGMENTS } from '../../../../src/engine/limits.ts';
import { decodeOrders, decodeRecord, decodeState } from '../../../../src/engine/redis/protocol/codec.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import {
  decodeHints,
  decodeSaleId,
  decodeSyncNews,
  decodeWatermarks,
  encodeHints,
} from '../../../../src/engine/redis/protocol/messages.ts';
import { decodeSaleRecord, decodeVersion } from '../../../../src/engine/redis/protocol/sale-record.ts';
import { rulesOf } from '../../../../src/engine/sale/rules.ts';

it('keys and channels have these names', () => {
  const keys = new Keys('p:');
  const { watermarks, hints, sales, syncs, changes, events, owner } = keys;
  expect({ watermarks, hints, sales, syncs, changes, events, owner }).toEqual({
    ...{ watermarks: 'p:watermarks', hints: 'p:hints', sales: 'p:sales', syncs: 'p:syncs' },
    ...{ changes: 'p:changes', events: 'p:events', owner: 'p:{p:changes}:owner' },
  });
  expect(keys.sale('s')).toBe('p:{s}:sale');
  expect(keys.segment({ saleId: 's', segment: 3 })).toEqual({
    ...{ segment: 'p:{s:3}:segment', buyers: 'p:{s:3}:buyers', log: 'p:{s:3}:log' },
    ...{ lock: 'p:{s:3}:lock', draft: 'p:{s:3}:draft' },
  });
  expect(keys.segments('s', 2)).toEqual(['p:{s:0}:segment', 'p:{s:1}:segment']);
});

describe('a hint', () => {
  const read = (message: string) => {
    const faults: BackendCorrupt[] = [];
    return { hints: decodeHints(message, (fault) => faults.push(fault)), faults };
  };

  it.each<[string, object]>([
    ['s 1', { saleId: 's', awaited: true, segments: [] }],
    ['a.sale-1 0 0 7 1023', { saleId: 'a.sale-1', awaited: false, segments: [0, 7, 1023] }],
  ])('that reads %j is read', (line, hint) => {
    expect(read(line)).toEqual({ hints: [hint], faults: [] });
  });

  it('may name every segment of a sale, and no more', () => {
    const segments = Array.from({ length: MAX_SEGMENTS }, (_, i) => i);
    const hint = { saleId: 's', awaited: true, segments };
    expect(read(encodeHints([hint]))).toEqual({ hints: [hint], faults: [] });
    expect(read(encodeHints([{ ...hint, segments: [...segments, 0] }])).faults).toHaveLength(1);
  });

  it.each([
    ...['', ' 1 0', 's', 's ', 's 2 0', 's  0', 's true 0', 'no/id 1 0', 's 1 ', 's 1 0 '],
    ...['s 1 05', 's 1 5e1', 's 1 1e2', 's 1 x5', 's 1 5x', 's 1 -5', 's 1 1.5', 's 1 0 x', 's 1 x 0'],
    ...['s 1 1024', 's 1 0 1024', 's 1 10000', 's 1 0\r'],
  ])('that reads %j is refused', (line) => {
    expect(read(`${line}\nt 0 7`)).toEqual({
      hints: [{ saleId: 't', awaited: false, segments: [7] }],
      faults: [expect.any(BackendCorrupt)],
    });
  });
});

it('a message about a sale is its id', () => {
  expect(decodeSaleId('a.sale-1')).toBe('a.sale-1');
  for (const other of ['', 'no id', 's\n']) expect(() => decodeSaleId(other)).toThrow(BackendCorrupt);
});

describe('news of a sync', () => {
  const GOOD = { from: '0123456789abcdef', sales: 3 };
  const HANDED = { to: 'fedcba9876543210', saleIds: ['a.sale-1', 'b'] };
  const saleIds = (count: number) => Array.from({ length: count }, (_, i) => `s${i}`);

  it.each([
    GOOD,
    { ...GOOD, sales: 0 },
    { ...GOOD, handedOver: HANDED },
    { ...GOOD, handedOver: { ...HANDED, saleIds: saleIds(MAX_HANDED_OVER) } },
    { ...GOOD, later: 1 },
  ])('is read: %j', (news) => {
    expect(decodeSyncNews(JSON.stringify(news))).toEqual(news);
  });

  it.each<[string, unknown]>([
    ['a number', 7],
    ['a text', 'x'],
    ['null', null],
    ['a short name', { ...GOOD, from: '0123456789abcde' }],
    ['a long name', { ...GOOD, from: '0123456789abcdef0' }],
    ['a name in capitals', { ...GOOD, from: '0123456789ABCDEF' }],
    ['a name that is a number', { ...GOOD, from: 123_456_789_012_345_6 }],
    ['no name', { sales: 3 }],
    ['no sales', { from: GOOD.from }],
    ['fewer than no sales', { ...GOOD, sales: -1 }],
    ['half a sale', { ...GOOD, sales: 0.5 }],
    ['sales as text', { ...GOOD, sales: '3' }],
    ...[
      7,
      null,
      { ...HANDED, to: 'x' },
      { ...HANDED, saleIds: 'a' },
      { ...HANDED, saleIds: [7] },
      { ...HANDED, saleIds: ['a', 7] },
      { ...HANDED, saleIds: ['a', 'no id'] },
      { ...HANDED, saleIds: saleIds(MAX_HANDED_OVER + 1) },
      { ...HANDED, saleIds: ['no id'] },
      { to: HANDED.to },
    ].map((handedOver): [string, unknown] => [
      `handed over ${JSON.stringify(handedOver)}`,
      { ...GOOD, handedOver },
    ]),
  ])('is refused: %s', (_, news) => {
    expect(() => decodeSyncNews(JSON.stringify(news))).toThrow(BackendCorrupt);
  });

  it('that is no JSON is refused', () => {
    expect(() => decodeSyncNews('{')).toThrow(BackendCorrupt);
  });
});

describe('a watermark', () => {
  const GOOD = { saleId: 's', segment: 1023, generation: 1, seq: 2, orders: 3, rejected: [] };
  const read = (told: unknown) => {
    const faults: unknown[] = [];
    return { told: decodeWatermarks(JSON.stringify([told]), (fault) => faults.push(fault)), faults };
  };

  it.each([
    GOOD,
    { ...GOOD, tails: ['1', '2'] },
    { ...GOOD, rejected: ['stock', 'limit', 'duplicate'].map((reason) => ({ orderId: '7', reason })) },
  ])('is read: %j', (told) => {
    expect(read(told)).toEqual({ told: [told], faults: [] });
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a text', 's'],
    ['another id', { ...GOOD, saleId: 'no id' }],
    ['no text as id', { ...GOOD, saleId: 7 }],
    ['a segment beyond the last', { ...GOOD, segment: 1024 }],
    ['a segment below the first', { ...GOOD, segment: -1 }],
    ...['segment', 'generation', 'seq', 'orders'].flatMap((name) =>
      [-1, 1.5, '1', null].map((value): [string, unknown] => [
        `${name} ${value}`,
        { ...GOOD, [name]: value },
      ]),
    ),
    ['no list of rejections', { ...GOOD, rejected: {} }],
    ['a rejection that is null', { ...GOOD, rejected: [null] }],
    ['a rejection that is a text', { ...GOOD, rejected: ['7'] }],
    ['a rejection of no order', { ...GOOD, rejected: [{ orderId: 'x', reason: 'stock' }] }],
    ['a rejection of a number', { ...GOOD, rejected: [{ orderId: 7, reason: 'stock' }] }],
    ['a rejection for another reason', { ...GOOD, rejected: [{ orderId: '7', reason: 'mood' }] }],
    ['no list of names', { ...GOOD, tails: {} }],
    ['a rejection that is invalid beside one', { ...GOOD, rejected: [{ orderId: '7', reason: 'stock' }, 7] }],
    ['a name that is none', { ...GOOD, tails: ['1', 'x'] }],
    ['a name that is a number', { ...GOOD, tails: [1] }],
  ])('with %s is refused', (_, told) => {
    const { told: kept, faults } = read(told);
    expect(kept).toEqual([]);
    expect(faults).toEqual([expect.any(BackendCorrupt)]);
  });
});

it.each(['{', '{}', 'null', '7', '"s"', '{"length":1}'])('watermarks that read %s are refused', (message) => {
  expect(() => decodeWatermarks(message, () => expect.unreachable())).toThrow(BackendCorrupt);
});

describe('stored values', () => {
  it('have quantities up to the largest limit', () => {
    expect(decodeRecord('1:1000:3:k')).toHaveLength(1);
    expect(decodeOrders('1 anna 1000 k')).toHaveLength(1);
    expect(() => decodeRecord('1:1001:3:k')).toThrow(BackendCorrupt);
    expect(() => decodeOrders('1 anna 1001 k')).toThrow(BackendCorrupt);
  });

  it('have ids of 63 bits', () => {
    expect(() => decodeRecord('9223372036854775808:1:3:k')).toThrow(BackendCorrupt);
    expect(() => decodeOrders('9223372036854775808 anna 1 k')).toThrow(BackendCorrupt);
  });

  it('have known states', () => {
    const states = ['open', 'paused', 'closed', 'loaded', 'frozen', 'lost'];
    expect(states.map(decodeState)).toEqual(states);
    for (const state of ['', 'sold', null, undefined])
      expect(() => decodeState(state)).toThrow(BackendCorrupt);
  });

  it('of a sale may lack what older versions did not write', () => {
    const sale = { id: 's', segments: 2, perBuyerLimit: 1, startsAt: 5, title: '', stock: 1, metadata: {} };
    const version = decodeVersion('6', '1', 'open');
    const read = (fields: object) => decodeSaleRecord('s', JSON.stringify({ ...sale, ...fields }), version);
    expect(read({})).toEqual({ sale, epoch: 6, generation: 1, state: 'open' });
    for (const fields of [{ requireToken: true }, { requireToken: false }, { endsAt: 9 }])
      expect(read(fields)!.sale).toEqual({ ...sale, ...fields });
    expect(read({ rules: 'r1' })).toMatchObject({ sale, rules: 'r1' });
    expect(read({ rules: 7 })).not.toHaveProperty('rules');
    for (const fields of [{ segments: 1025 }, { perBuyerLimit: 1_001 }, { segments: 0 }])
      expect(() => read(fields)).toThrow(BackendCorrupt);
    expect(decodeSaleRecord('s', JSON.stringify(sale), undefined)).toBeUndefined();
    expect(decodeSaleRecord('s', '', version)).toBeUndefined();
  });

  it.each([
    [null, '1', 'open'],
    ['6', null, 'open'],
    ['6', '1', null],
  ])('of a version are all there, or there is none: %j %j %j', (epoch, generation, state) => {
    expect(decodeVersion(epoch, generation, state)).toBeUndefined();
  });
});

it('rules differ where what admits a purchase differs', () => {
  const sale = { startsAt: 1, endsAt: 2, requireToken: false, perBuyerLimit: 3 };
  expect(rulesOf(sale)).toBe('1:2::3');
  expect(rulesOf({ ...sale, requireToken: true })).toBe('1:2:token:3');
  expect(rulesOf({ ...sale, endsAt: undefined })).toBe('1:::3');
});
