import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HeldOrder, TakeOrder } from '../../src/engine/contract.ts';
import { BackendCorrupt } from '../../src/engine/errors.ts';
import { ID_PATTERN, MAX_PER_BUYER_LIMIT } from '../../src/engine/limits.ts';
import { decodeCount, decodeOrders, decodeRecord, encodeRecord } from '../../src/engine/redis/codec.ts';

const visible = fc.stringMatching(/^[!-~]{1,128}$/);
const key = fc.oneof(visible, fc.constant(''), fc.constantFrom('1:2:3:4', ':', '::1', '%d+'));
const orderId = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String);
const quantity = fc.integer({ min: 1, max: MAX_PER_BUYER_LIMIT });
const heldOrder: fc.Arbitrary<HeldOrder> = fc.record({ orderId, quantity, key, seq: fc.maxSafeNat() });
const takeOrder: fc.Arbitrary<TakeOrder> = fc.record({ orderId, buyerId: visible, quantity, key });

describe("a buyer's record", () => {
  it('comes back as it was, whatever the keys are', () => {
    fc.assert(
      fc.property(fc.array(heldOrder), (orders) => {
        expect(decodeRecord(encodeRecord(orders))).toEqual(orders);
      }),
    );
  });

  it('that is missing or empty holds nothing', () => {
    expect([decodeRecord(null), decodeRecord('')]).toEqual([[], []]);
  });

  it.each([
    'nonsense',
    '1:2:3',
    '1:2:3:k 4:5',
    '1:x:3:k',
    ':1:2:k',
    '1:2:3:k ',
    ' 1:2:3:k',
    '1:2:3:k  4:5:6:k',
    '1:-2:3:k',
  ])('that reads "%s" is corrupt', (record) => {
    expect(() => decodeRecord(record)).toThrow(BackendCorrupt);
  });
});

describe('the orders of a log entry', () => {
  /** As take.lua writes them. */
  const written = (orders: readonly TakeOrder[]) =>
    orders.map((o) => `${o.orderId} ${o.buyerId} ${o.quantity} ${o.key}`).join('\n');

  it('come back as they were, in their order', () => {
    fc.assert(
      fc.property(fc.array(takeOrder, { minLength: 1 }), (orders) => {
        expect(decodeOrders(written(orders))).toEqual(orders);
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['words', 'nonsense'],
    ['no key field', '1 anna 2'],
    ['no quantity', '1 anna  k'],
    ['no buyer', '1  2 k'],
    ['no id', ' anna 2 k'],
    ['a quantity of zero', '1 anna 0 k'],
    ['a quantity below zero', '1 anna -1 k'],
    ['a quantity that is no number', '1 anna two k'],
    ['half a unit', '1 anna 1.5 k'],
    ['a quantity in another notation', '1 anna 0x2 k'],
    ['a space in the key', '1 anna 2 k k'],
    ['an empty line behind', '1 anna 2 k\n'],
    ['a broken line among good ones', '1 anna 2 k\n2 ben\n3 cleo 1 '],
  ])('with %s are corrupt', (_, lines) => {
    expect(() => decodeOrders(lines)).toThrow(BackendCorrupt);
  });

  it('are named in the error, but not at any length', () => {
    const error = (() => {
      try {
        return decodeOrders('x'.repeat(100_000));
      } catch (thrown) {
        return thrown as Error;
      }
    })();
    expect((error as Error).message).toContain('xxx');
    expect((error as Error).message.length).toBeLessThan(300);
  });
});

describe('a counter', () => {
  it('is read as a number', () => {
    expect(['0', '7', '2147483648', '4503599627370496'].map(decodeCount)).toEqual([0, 7, 2 ** 31, 2 ** 52]);
  });

  it.each([null, undefined, '', 'many', '-1', '1.5', '1e3', ' 1', 'nan'])(
    'that reads %s is corrupt, never zero',
    (text) => {
      expect(() => decodeCount(text)).toThrow(BackendCorrupt);
    },
  );
});

it('what the codec can carry is what ids may be', () => {
  fc.assert(fc.property(visible, (id) => ID_PATTERN.test(id) && !/[\s\n]/.test(id)));
});
