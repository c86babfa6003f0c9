/** What nodes write for the scripts, and read of what the scripts have written. */
import { expect, it } from 'vitest';
import { BackendCorrupt } from '../../../../../src/engine/errors.ts';
import {
  corrupt,
  decodeWithdrawal,
  encodeDigest,
  encodeOrders,
} from '../../../../../src/engine/redis/protocol/codec.ts';

it('orders are lines of four words', () => {
  const anna = { orderId: '11', buyerId: 'anna', quantity: 2, key: 'k' };
  expect(encodeOrders([])).toBe('');
  expect(encodeOrders([anna, { ...anna, orderId: '12', key: '' }])).toBe('11 anna 2 k\n12 anna 2 ');
});

it('a sale as expected is a line, and one for each segment: its newest entry is applied', () => {
  const sale = { saleId: 's', generation: 3, state: 'open', rules: 'r1' } as const;
  expect(encodeDigest({ ...sale, newest: [] })).toBe('3 open r1');
  const newest = [
    { seq: 7, tail: '11', orders: 20 },
    { seq: 0, tail: '', orders: 0 },
  ];
  expect(encodeDigest({ ...sale, newest })).toBe('3 open r1\n3 open r1 7 11 7\n3 open r1 0  0');
});

it('a withdrawal is a movement with its units; none are left of one that was given back', () => {
  expect(decodeWithdrawal('')).toEqual({ movement: '', units: 0 });
  expect(decodeWithdrawal('7 5')).toEqual({ movement: '7', units: 5 });
  expect(decodeWithdrawal('7 back')).toEqual({ movement: '7', units: 0 });
  for (const text of ['7', '7 ', ' 5', 'x 5', '7 x', '7 5 5', '7 backs'])
    expect(() => decodeWithdrawal(text), text).toThrow(BackendCorrupt);
});

it('invalid data is shown with its first 200 characters, whatever it is', () => {
  expect(() => corrupt('this is', 'x'.repeat(201))).toThrow(
    new BackendCorrupt(`this is "${'x'.repeat(200)}"`),
  );
  expect(() => corrupt('this is', null)).toThrow(new BackendCorrupt('this is null'));
});
