import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HeldOrder, LogHint, TakeOrder, Watermark } from '../../../../src/engine/contract.ts';
import { BackendCorrupt } from '../../../../src/engine/errors.ts';
import { ID_PATTERN, MAX_PER_BUYER_LIMIT, MAX_SEGMENTS } from '../../../../src/engine/limits.ts';
import {
  decodeCount,
  decodeOrders,
  decodeRecord,
  decodeWithdrawal,
  encodeNotes,
  encodeOrders,
  encodeRecord,
  withNotes,
} from '../../../../src/engine/redis/protocol/codec.ts';
import {
  decodeHints,
  decodeSaleId,
  decodeWatermarks,
  encodeHints,
} from '../../../../src/engine/redis/protocol/messages.ts';
import { decodeSaleRecord, decodeVersion } from '../../../../src/engine/redis/protocol/sale-record.ts';
import { seed } from '../../../support/fixtures.ts';

const visible = fc.stringMatching(/^[!-~]{1,128}$/);
const key = fc.oneof(visible, fc.constant(''), fc.constantFrom('1:2:3:4', ':', '::1', '%d+'));
const orderId = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String);
const quantity = fc.integer({ min: 1, max: MAX_PER_BUYER_LIMIT });
const heldOrder: fc.Arbitrary<HeldOrder> = fc.record({ orderId, quantity, key, seq: fc.maxSafeNat() });
const takeOrder: fc.Arbitrary<TakeOrder> = fc.record({ orderId, buyerId: visible, quantity, key });

describe("a buyer's record", () => {
  it('is decoded as it was encoded, whatever the keys are', () => {
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

  it('are decoded as they were encoded, in their order', () => {
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

  it('have the notes that were written with them', () => {
    const orders = decodeOrders('1 anna 2 k\n2 ben 1 ');
    const note = '{"reference":"cart 1"}';
    expect(encodeNotes(orders)).toBe('');
    expect(encodeNotes([orders[0]!, { ...orders[1]!, note }])).toBe(`2 ${note}`);
    expect(withNotes(orders, `2 ${note}\n3 ${note}`)).toEqual([orders[0], { ...orders[1], note }]);
    const all = orders.map((order) => ({ ...order, note }));
    expect(encodeNotes(all)).toBe(`1 ${note}\n2 ${note}`);
  });

  it.each([
    '',
    '1',
    '1 cart',
    '1 {"reference":1}',
    '1 {"reference":"a\\u0000"}',
    '1 {"metadata":[]}',
    '1 {"more":1}',
    '1 {}\n',
  ])('with the note %j are corrupt', (lines) => {
    expect(() => withNotes(decodeOrders('1 anna 2 k'), lines)).toThrow(BackendCorrupt);
  });

  it('are quoted in the error, shortened', () => {
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

it('the codec accepts exactly the valid ids', () => {
  fc.assert(fc.property(visible, (id) => ID_PATTERN.test(id) && !/[\s\n]/.test(id)));
});

/** Decoding accepts exactly what encoding writes, and refuses everything else with one error. */
function expectStrict<T>(text: string, decode: (text: string) => T, encode: (value: T) => string): void {
  let value: T;
  try {
    value = decode(text);
  } catch (error) {
    expect(error, JSON.stringify(text)).toBeInstanceOf(BackendCorrupt);
    return;
  }
  expect(encode(value), JSON.stringify(text)).toBe(text);
}

describe('data that no version has written', () => {
  const strange = fc.constantFrom('\0', '\n', ' ', ':', '-', '+', '0', '9', '99999999999999999999', 'e', '.');
  const piece = fc.oneof(
    strange,
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\ufffd', '\u00a0', '\ud800'),
  );
  /** Something good in which one place was changed. */
  const mutated = (good: fc.Arbitrary<string>) =>
    fc.tuple(good, fc.nat(), fc.nat(3), piece).map(([text, at, removed, added]) => {
      const from = at % (text.length + 1);
      return text.slice(0, from) + added + text.slice(from + removed);
    });
  const any = (good: fc.Arbitrary<string>) => fc.oneof(mutated(good), good, fc.string({ unit: 'binary' }));
  const parameters = { seed: seed(), numRuns: 1_000 };

  const watermark: fc.Arbitrary<Watermark> = fc.record(
    {
      saleId: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
      segment: fc.nat(MAX_SEGMENTS - 1),
      generation: fc.nat(),
      seq: fc.maxSafeNat(),
      orders: fc.maxSafeNat(),
      rejected: fc.array(fc.record({ orderId, reason: fc.constantFrom('stock', 'limit', 'duplicate') })),
      tails: fc.array(orderId),
    },
    { requiredKeys: ['saleId', 'segment', 'generation', 'seq', 'orders', 'rejected'] },
  );
  const hint: fc.Arbitrary<LogHint> = fc.record({
    saleId: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
    awaited: fc.boolean(),
    segments: fc.array(fc.nat(MAX_SEGMENTS - 1)),
  });

  const strictHints = (message: string) =>
    decodeHints(message, (fault) => {
      throw fault;
    });

  it.each<[string, (text: string) => unknown, (value: never) => string, fc.Arbitrary<string>]>([
    ['a record', decodeRecord, encodeRecord, fc.array(heldOrder, { minLength: 1 }).map(encodeRecord)],
    ['orders', decodeOrders, encodeOrders, fc.array(takeOrder, { minLength: 1 }).map(encodeOrders)],
    ['a counter', decodeCount, String, fc.maxSafeNat().map(String)],
    ['hints', strictHints, encodeHints, fc.array(hint, { minLength: 1 }).map(encodeHints)],
    ['a sale id', decodeSaleId, String, fc.constantFrom('tickets', 'a.b-c_D', '0')],
    [
      'a withdrawal',
      decodeWithdrawal,
      ({ movement, units }: { movement: string; units: number }) => (movement ? `${movement} ${units}` : ''),
      fc.tuple(fc.nat(), fc.maxSafeNat()).map((words) => words.join(' ')),
    ],
  ])('is refused in %s, and nothing else is', (_, decode, encode, good) => {
    fc.assert(
      fc.property(any(good), (text) => {
        if (decode === decodeRecord && text === '') return;
        if (decode === decodeWithdrawal && text.endsWith(' back')) return;
        expectStrict(text, decode, encode as (value: unknown) => string);
      }),
      parameters,
    );
  });

  it('is refused in a hint, and the other hints of the message still count', () => {
    fc.assert(
      fc.property(fc.array(hint), fc.array(hint), (before, behind) => {
        const faults: BackendCorrupt[] = [];
        const message = encodeHints([
          ...before,
          { saleId: 's', awaited: true, segments: [MAX_SEGMENTS] },
          ...behind,
        ]);
        expect(decodeHints(message, (fault) => faults.push(fault))).toEqual([...before, ...behind]);
        expect(faults).toHaveLength(1);
      }),
    );
  });

  it('is refused in watermarks, and nothing else is', () => {
    fc.assert(
      fc.property(fc.array(watermark), (told) => {
        expect(decodeWatermarks(JSON.stringify(told), () => expect.unreachable())).toEqual(told);
      }),
    );
    fc.assert(
      fc.property(fc.array(watermark), fc.array(watermark), (before, behind) => {
        const later = {
          ...behind[0],
          saleId: 's',
          rejected: [{ orderId: '1', reason: 'of a later version' }],
        };
        const faults: BackendCorrupt[] = [];
        const message = JSON.stringify([...before, later, ...behind]);
        expect(decodeWatermarks(message, (fault) => faults.push(fault))).toEqual([...before, ...behind]);
        expect(faults).toHaveLength(1);
      }),
    );
    const counts = ['segment', 'generation', 'seq', 'orders'] as const;
    fc.assert(
      fc.property(any(fc.array(watermark).map((told) => JSON.stringify(told))), (message) => {
        let told: Watermark[];
        try {
          told = decodeWatermarks(message, (fault) => expect(fault).toBeInstanceOf(BackendCorrupt));
        } catch (error) {
          expect(error).toBeInstanceOf(BackendCorrupt);
          return;
        }
        for (const mark of told) for (const name of counts) expect(mark[name]).toBeGreaterThanOrEqual(0);
      }),
      parameters,
    );
  });

  it('is refused in a sale, and names it', () => {
    const sale = { id: 's', segments: 2, perBuyerLimit: 1, startsAt: 5, title: '', stock: 1, metadata: {} };
    const version = decodeVersion('0', '1', 'open');
    expect(decodeSaleRecord('s', JSON.stringify(sale), version)).toMatchObject({ sale, generation: 1 });
    for (const definition of ['null', '[]', '""', '{'])
      expect(() => decodeSaleRecord('s', definition, version)).toThrow(BackendCorrupt);
    const changed = fc.constantFrom('id', 'segments', 'perBuyerLimit', 'requireToken', 'startsAt', 'endsAt');
    const wrong = fc.constantFrom('', '2', 0, -1, 1.5, 1e300, null, [], {}, true);
    fc.assert(
      fc.property(changed, wrong, (name, value) => {
        fc.pre(!(name === 'requireToken' && value === true));
        fc.pre(!(['startsAt', 'endsAt'].includes(name) && typeof value === 'number' && value < 1e300));
        const decode = () => decodeSaleRecord('s', JSON.stringify({ ...sale, [name]: value }), version);
        expect(decode).toThrow(BackendCorrupt);
        expect(decode).toThrow(/the definition of sale s/);
      }),
    );
    fc.assert(
      fc.property(any(fc.constant(JSON.stringify(sale))), (definition) => {
        try {
          expect(decodeSaleRecord('s', definition, version)?.sale.id ?? 's').toBe('s');
        } catch (error) {
          expect(error).toBeInstanceOf(BackendCorrupt);
        }
      }),
      parameters,
    );
    expect(() => decodeVersion('x', '1', 'open')).toThrow(BackendCorrupt);
    expect(() => decodeVersion('0', '-1', 'open')).toThrow(BackendCorrupt);
    expect(() => decodeVersion('0', '1', 'sold')).toThrow(BackendCorrupt);
  });
});
