/** A sale as an operator sends it: what is missing gets a default, and each fault is named with its field. */
import { describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../../src/engine/errors.ts';
import { parseNewSale, parseSale, saleToJson } from '../../../../src/engine/sale/sale-json.ts';

const TIME_FORM = 'must be a time in ISO 8601 with zone, such as 2026-11-27T20:00:00+01:00';
const NOW = Date.UTC(2026, 10, 27, 12);
const parse = (fields: object) => parseNewSale({ id: 'tickets', stock: 10, ...fields }, NOW);

/** `undefined`: the sale is valid. */
function faultsOf(input: unknown): string[] | undefined {
  try {
    parseSale(input, NOW);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInput);
    return (error as InvalidInput).faults.map(({ field, problem }) => `${field}: ${problem}`);
  }
}

const faultsWith = (fields: object) => faultsOf({ id: 'tickets', stock: 10, ...fields });

/** An object with a member, whose value has a member, and so on. */
function nested(levels: number): object {
  let value: object = {};
  for (let i = 1; i < levels; i++) value = { a: value };
  return value;
}

it('needs an id and a stock; it starts now, and has no end', () => {
  expect(parse({})).toEqual({
    sale: {
      ...{ id: 'tickets', title: '', stock: 10, segments: 8, perBuyerLimit: 1, requireToken: false },
      ...{ startsAt: NOW, endsAt: undefined, payWithinSeconds: undefined, priceMinor: undefined },
      ...{ faceValueMinor: undefined, currency: undefined, shopId: undefined, metadata: {} },
    },
    reason: '',
  });
});

it('takes its fields as they are given, and times in any zone', () => {
  const plain = {
    ...{ title: 'Tickets', segments: 4, perBuyerLimit: 2, requireToken: true, payWithinSeconds: 900 },
    ...{
      priceMinor: 1_999,
      faceValueMinor: 2_500,
      currency: 'EUR',
      shopId: 'shop',
      metadata: { a: [1, null] },
    },
  };
  const times = { startsAt: '2026-11-27T20:00:00+01:00', endsAt: '2026-11-27T19:00:01Z' };
  const { sale, reason } = parse({ ...plain, ...times, reason: 'why not' });
  const startsAt = Date.UTC(2026, 10, 27, 19);
  expect(sale).toEqual({ id: 'tickets', stock: 10, ...plain, startsAt, endsAt: startsAt + 1_000 });
  expect(reason).toBe('why not');
  expect(saleToJson(sale)).toMatchObject({
    startsAt: '2026-11-27T19:00:00.000Z',
    endsAt: '2026-11-27T19:00:01.000Z',
  });
  expect(saleToJson({ ...sale, endsAt: undefined }).endsAt).toBeUndefined();
});

describe('is refused', () => {
  const idForm = '1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit';

  it('with all faults at once', () => {
    expect(faultsOf({})).toEqual([
      `id: is required: ${idForm}`,
      'stock: is required: the units for sale, from 1 to 2147483648',
    ]);
  });

  it.each([
    [{ id: 5 }, 'id: must be a string'],
    [{ id: 'a b' }, `id: must be ${idForm}`],
    [{ title: 5 }, 'title: must be a string'],
    [{ title: 'x'.repeat(201) }, 'title: must have at most 200 characters'],
    [{ title: 'a\nb' }, 'title: must be one line of well-formed text without control characters'],
    [{ stock: 0 }, 'stock: must be at least 1'],
    [{ stock: 2_147_483_649 }, 'stock: must be at most 2147483648'],
    [{ stock: 1.5 }, 'stock: must be a whole number from 1 to 2147483648'],
    [{ startsAt: 5 }, `startsAt: ${TIME_FORM}`],
    [{ startsAt: 'soon' }, `startsAt: ${TIME_FORM}; "soon" is none`],
    [{ startsAt: 'x'.repeat(99) }, `startsAt: ${TIME_FORM}; "${'x'.repeat(40)}…" is none`],
    [
      { endsAt: '2026-11-27T20:00' },
      `endsAt: ${TIME_FORM}; "2026-11-27T20:00" has no zone: add Z for UTC, or an offset such as +01:00`,
    ],
    ...[
      ['2026-02-30T10:00:00Z', 'names a day that does not exist'],
      ['2026-13-01T10:00:00Z', 'names a day that does not exist'],
      ['2026-11-29Z', 'has no time of day'],
      [
        '2026-11-31',
        'names a day that does not exist, has no time of day, and has no zone: add Z for UTC, or an offset such as +01:00',
      ],
      ['2026-11-29T24:00:00Z', 'names a time of day that does not exist'],
      ['2026-11-29 10:00Z', 'has no T before the time of day'],
      ['2026-11-29T10:00+0100', 'has no zone in the form Z or +01:00'],
      ['2026-11-29T10:00 CET', 'has no zone in the form Z or +01:00'],
      ['29.11.2026', 'is none'],
    ].map(([text, fault]): [object, string] => [
      { startsAt: text },
      `startsAt: ${TIME_FORM}; "${text}" ${fault}`,
    ]),
    [{ startsAt: '0000-12-31T23:59:59.999Z' }, 'startsAt: must be in the years 1 to 9999, in UTC'],
    [{ startsAt: '0001-01-01T00:00:00+00:01' }, 'startsAt: must be in the years 1 to 9999, in UTC'],
    [{ endsAt: '9999-12-31T23:59:59-00:01' }, 'endsAt: must be in the years 1 to 9999, in UTC'],
    [{ endsAt: new Date(NOW).toISOString() }, 'endsAt: must be after startsAt'],
    [{ priceMinor: 4_900 }, 'priceMinor: needs a `currency`, such as EUR'],
    [{ faceValueMinor: 0 }, 'faceValueMinor: needs a `currency`, such as EUR'],
    [{ requireToken: 'no' }, 'requireToken: must be true or false'],
    [{ metadata: [] }, 'metadata: must be an object, such as {"gate":"A"}'],
    [{ metadata: nested(33) }, 'metadata: must be nested at most 32 deep'],
    [{ metadata: { a: 'x'.repeat(16_377) } }, 'metadata: must have at most 16384 bytes as JSON'],
    [{ metadata: { a: ['\0'] } }, 'metadata: must hold well-formed text without NUL characters'],
    [{ metadata: { '\0': 1, b: 'b' } }, 'metadata: must hold well-formed text without NUL characters'],
    [{ stoc: 1, '': 2 }, 'stoc, "": is not a field of a sale'],
  ])('with %o', (fields, fault) => {
    expect(faultsWith(fields)).toEqual([fault]);
  });

  it.each(['eur', 'EURO', '1EUR', 'EUR1', 'E', ''])('with the currency %j', (currency) => {
    expect(faultsWith({ currency })).toEqual(['currency: must be an ISO 4217 code such as EUR']);
  });

  it.each([undefined, null, [], 'tickets', 5])('if it is no object but %o', (input) => {
    expect(faultsOf(input)).toEqual(['the sale: must be a JSON object']);
  });
});

it.each([
  { metadata: nested(32) },
  { metadata: { a: null, b: [null, 'x'], c: 'x'.repeat(16_000) } },
  { metadata: { a: 'x'.repeat(16_376) } },
  { title: 'x'.repeat(200), stock: 2_147_483_648 },
  { endsAt: new Date(NOW + 1).toISOString() },
  { startsAt: '0001-01-01T00:00:00Z', endsAt: '9999-12-31T23:59:59.999Z' },
])('is taken at its bounds', (fields) => {
  expect(faultsWith(fields)).toBeUndefined();
});

describe('the queue of a sale', () => {
  const settings = { offerSeconds: 30, presenceSeconds: 0, maxWaiting: 500, fit: 'less' } as const;

  it('is given by flat fields, and is one member of the sale', () => {
    const { sale } = parse({ queue: 'draw', ...settings });
    expect(sale.queue).toEqual({ order: 'draw', ...settings });
    expect(saleToJson(sale)).toMatchObject({ queue: 'draw', ...settings });
    expect(Object.keys(sale)).not.toContain('offerSeconds');
  });

  it('is none unless it is given, or if it is off', () => {
    for (const fields of [{}, { queue: 'off' }])
      expect(Object.keys(parse(fields).sale)).not.toContain('queue');
  });

  it('must be on for its settings to mean anything', () => {
    const problem = (queue: string) => `needs \`queue\` fifo or draw; it is ${queue}`;
    expect(faultsWith({ offerSeconds: 5 })).toEqual([`offerSeconds: ${problem('off')}`]);
    expect(faultsWith({ queue: 'off', fit: 'less', maxWaiting: 5 })).toEqual([
      `maxWaiting: ${problem('off')}`,
      `fit: ${problem('off')}`,
    ]);
  });

  it('does not hide that the sale had another one, which JSON does not say', () => {
    const { sale } = parse({ queue: 'fifo' });
    expect(saleToJson({ ...sale, hadQueue: true })).toEqual(saleToJson(sale));
  });
});

it.each([
  [{ metadata: nested(5_000) }, 'metadata: must be nested at most 32 deep'],
  [{ metadata: { a: 5, b: true } }, undefined],
  [{ metadata: { a: 'x'.repeat(16_400), b: nested(33) } }, 'metadata: must be nested at most 32 deep'],
  [
    { metadata: { a: 'fine', b: ['fine', '\ud800'] } },
    'metadata: must hold well-formed text without NUL characters',
  ],
])('metadata is checked to its depth first, and then whole', (fields, fault) => {
  expect(faultsWith(fields)).toEqual(fault && [fault]);
});
