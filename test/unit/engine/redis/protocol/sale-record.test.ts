/** A sale in Redis: what of it is checked before a node sells by it. */
import { describe, expect, it } from 'vitest';
import { BackendCorrupt } from '../../../../../src/engine/errors.ts';
import { MAX_PER_BUYER_LIMIT, MAX_SEGMENTS } from '../../../../../src/engine/limits.ts';
import { decodeSaleRecord } from '../../../../../src/engine/redis/protocol/sale-record.ts';

const SALE = { id: 's', segments: 2, perBuyerLimit: 1, startsAt: 5, stock: 1 };
const VERSION = { epoch: 6, generation: 1, state: 'open' } as const;
/** The last millisecond that a date can hold. */
const LAST_MS = 8.64e15;

const read = (fields: object) => decodeSaleRecord('s', JSON.stringify({ ...SALE, ...fields }), VERSION);

describe('the definition of a sale', () => {
  it.each([
    {},
    { segments: 1 },
    { segments: MAX_SEGMENTS },
    { perBuyerLimit: MAX_PER_BUYER_LIMIT },
    { requireToken: true },
    { requireToken: false },
    { startsAt: 0 },
    { startsAt: LAST_MS },
    { endsAt: 7 },
    { endsAt: -LAST_MS },
    { queue: {} },
    { queue: { perSecond: 5 } },
  ])('is read with %j', (fields) => {
    expect(read(fields)).toStrictEqual({ sale: { ...SALE, ...fields }, ...VERSION });
  });

  it.each<[name: string, values: unknown[]]>([
    ['id', ['t', '', 7, null, undefined]],
    ['segments', [0, -1, 1.5, MAX_SEGMENTS + 1, '2', null, undefined, [2]]],
    ['perBuyerLimit', [0, -1, 1.5, MAX_PER_BUYER_LIMIT + 1, '2', null, undefined, true]],
    ['requireToken', ['', 'true', 0, 1, null, {}]],
    ['startsAt', ['', '5', null, undefined, true, [], {}, LAST_MS + 1]],
    ['endsAt', ['', '5', null, true, [], {}, -LAST_MS - 1]],
    ['queue', ['', 'long', 0, 5, null, true]],
  ])('is refused with another %s', (name, values) => {
    for (const value of values)
      expect(() => read({ [name]: value }), JSON.stringify(value)).toThrow(BackendCorrupt);
  });

  it.each(['null', '7', '"s"', '[]', '{}', 'true', '{', 's'])('is refused if it reads %s', (definition) => {
    expect(() => decodeSaleRecord('s', definition, VERSION)).toThrow(BackendCorrupt);
  });
});
