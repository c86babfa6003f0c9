/** Any input from an operator is either a sale, which survives a round trip, or a list of its faults. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Sale } from '../../../../src/engine/contract.ts';
import { InvalidInput } from '../../../../src/engine/errors.ts';
import { parseSale, saleToJson } from '../../../../src/engine/sale/sale-json.ts';
import { seed } from '../../../support/fixtures.ts';

const RUNS = Number(process.env.FUZZ_RUNS ?? 500);
const MAX_TIME_MS = 8.64e15;

const digits = (most: number) => fc.integer({ min: 0, max: most }).map((n) => String(n).padStart(2, '0'));
const zone = fc.oneof(
  fc.constantFrom('Z', '', 'z'),
  fc.tuple(fc.constantFrom('+', '-'), digits(25), digits(61)).map(([sign, h, m]) => `${sign}${h}:${m}`),
);
const year = fc.oneof(fc.constantFrom('0000', '0001', '1970', '2026', '9999', '10000', '-000001', '+275760'));
/** Strings, some of which are times. */
const instant = fc
  .tuple(
    year,
    digits(13),
    digits(32),
    digits(25),
    digits(61),
    digits(61),
    fc.constantFrom('', '.0', '.123456789', ':', '.'),
    zone,
  )
  .map(([y, mo, d, h, mi, s, fraction, z]) => `${y}-${mo}-${d}T${h}:${mi}:${s}${fraction}${z}`);
const sound = {
  ...{ id: 'tickets', title: 'Tickets', stock: 100, segments: 4, startsAt: '2026-11-27T20:00:00+01:00' },
  ...{
    endsAt: '2098-01-01T00:00:00Z',
    perBuyerLimit: 2,
    requireToken: true,
    payWithinSeconds: 900,
    priceMinor: 1_999,
  },
  ...{ faceValueMinor: 2_500, currency: 'EUR', shopId: 'shop', metadata: { a: [1, { b: null }] } },
};
const numbers = fc.constantFrom(-1, 0, 1, 0.5, 2 ** 31, 2 ** 31 + 1, 2 ** 53, 1e308, '5', true);
const json = fc.jsonValue({ maxDepth: 40, stringUnit: 'binary' });
const member = fc.tuple(
  fc.oneof(fc.constantFrom(...Object.keys(sound)), fc.constantFrom('__proto__', 'constructor', 'state')),
  fc.oneof(json, instant, numbers, fc.string({ unit: 'binary', maxLength: 300 })),
);
/** A sale some of whose members are other ones, or missing; as it comes out of a body. */
const bent = fc
  .tuple(fc.array(member, { maxLength: 3 }), fc.subarray(Object.keys(sound), { minLength: 8 }))
  .map(([members, kept]) => {
    const entries = Object.entries(sound).filter(([name]) => kept.includes(name));
    const all = [...entries, ...members].map(
      ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
    );
    return JSON.parse(`{${all.join(',')}}`) as unknown;
  });

function parsed(input: unknown): Sale | InvalidInput {
  try {
    return parseSale(input, Date.UTC(2026, 0));
  } catch (error) {
    if (error instanceof InvalidInput) return error;
    throw error;
  }
}

it('round-trips as a sale, or is refused with its faults', () => {
  const property = fc.property(fc.oneof({ weight: 5, arbitrary: bent }, json), (input) => {
    const sale = parsed(input);
    if (sale instanceof InvalidInput) {
      expect(sale.faults.length).toBeGreaterThan(0);
      for (const { field, problem } of sale.faults) expect([field, problem]).not.toContain('');
      return;
    }
    expect(Math.abs(sale.startsAt)).toBeLessThanOrEqual(MAX_TIME_MS);
    expect(parseSale(JSON.parse(JSON.stringify(saleToJson(sale))))).toEqual(sale);
  });
  fc.assert(property, { seed: seed(), numRuns: RUNS, examples: [[sound]] });
});
