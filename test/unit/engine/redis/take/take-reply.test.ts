/** What the replies of take.lua mean. */
import { describe, expect, it } from 'vitest';
import type { TakeReply } from '../../../../../src/engine/contract.ts';
import { BackendCorrupt } from '../../../../../src/engine/errors.ts';
import type { RawTakeReply } from '../../../../../src/engine/redis/protocol/scripts.ts';
import { decodeTake, toldTime } from '../../../../../src/engine/redis/take/take-reply.ts';

describe('a take that was served', () => {
  const served = { status: 'served', seq: 9, committed: 6, left: 4, orders: 27, returned: 5 };

  it.each<[string, RawTakeReply, number, object[]]>([
    ['without answers has taken all orders', [9, 6, 4, 27, 5], 2, [{ kind: 'taken' }, { kind: 'taken' }]],
    ['of no orders has no results', [9, 6, 4, 27, 5], 0, []],
    [
      'has an answer for each order',
      [9, 6, 4, 27, 5, 1, 0, 'replay 11 2 3', 'mismatch 12 4', 'limit 13 14', 'limit '],
      6,
      [
        { kind: 'taken' },
        { kind: 'short' },
        { kind: 'replay', orderId: '11', quantity: 2, seq: 3 },
        { kind: 'mismatch', orderId: '12', quantity: 4 },
        { kind: 'limit', orderIds: ['13', '14'] },
        { kind: 'limit', orderIds: [] },
      ],
    ],
  ])('%s', (_, reply, orders, results) => {
    expect(decodeTake(reply, orders)).toEqual({ ...served, results });
  });

  it.each<[string, RawTakeReply, number]>([
    ['fewer answers than orders', [9, 6, 4, 27, 5, 1], 2],
    ['more answers than orders', [9, 6, 4, 27, 5, 1, 1, 0], 2],
    ['an answer that no version gives', [9, 6, 4, 27, 5, 1, 'refund 7'], 2],
    ['a number that is no answer', [9, 6, 4, 27, 5, 2], 1],
  ])('with %s is invalid', (_, reply, orders) => {
    expect(() => decodeTake(reply, orders)).toThrow(BackendCorrupt);
  });
});

describe('a take that was refused', () => {
  it.each<[string, TakeReply['status']]>([
    ...(['paused', 'closed', 'busy', 'superseded', 'outdated', 'stale'] as const).map(
      (status): [string, TakeReply['status']] => [status, status],
    ),
    ['loaded', 'stale'],
    ['frozen', 'stale'],
    ['lost', 'stale'],
    ['late 1790000000123', 'late'],
  ])('with %s is %s', (reply, status) => {
    expect(decodeTake(reply, 1)).toEqual({ status });
  });

  it('tells the time only if it was too late', () => {
    expect(toldTime('late 1790000000123')).toBe(1_790_000_000_123);
    expect(toldTime('paused')).toBeUndefined();
    expect(toldTime([9, 6, 4, 27, 5])).toBeUndefined();
  });

  it.each(['', 'ajar', 'string', 'late'])('with %j is invalid', (reply) => {
    expect(() => decodeTake(reply, 1)).toThrow(BackendCorrupt);
  });
});
