import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { homeSegment } from '../../../../src/engine/sale/home-segment.ts';

const SEGMENTS = 64;
/** With 63 degrees of freedom a fair source exceeds this once in some ten million trials. */
const BOUND = 138;

describe('the home segment', () => {
  it.each([
    ['anna', 64, 13],
    ['anna', 8, 5],
    ['100003', 64, 57],
    ['100004', 64, 58],
    ['f47ac10b-58cc-4372-a567-0e02b2c3d479', 1_024, 487],
    ['~'.repeat(128), 1_000, 27],
    ['anybody', 1, 0],
  ])('of %s among %i is %i for ever: records are kept there', (buyerId, segments, home) => {
    expect(homeSegment(buyerId, segments)).toBe(home);
  });

  it('is one of the segments, for every buyer', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme-ascii' }),
        fc.integer({ min: 1, max: 1_024 }),
        (buyerId, segments) => {
          const home = homeSegment(buyerId, segments);
          return Number.isInteger(home) && home >= 0 && home < segments;
        },
      ),
    );
  });

  it.each([
    ['sequential numbers', (i: number) => String(100_003 + i)],
    ['numbers that count in steps of 64', (i: number) => String(i * 64)],
    ['names with a running number', (i: number) => `buyer-${i}`],
    ['padded numbers', (i: number) => String(i).padStart(12, '0')],
    ['order ids', (i: number) => String(646_000_000_000_000_000n + BigInt(i) * 4_294_967_296n)],
    ['hexadecimal ids', (i: number) => (i * 2_654_435_761).toString(16)],
    ['addresses at one domain', (i: number) => `${i}@example.com`],
  ])('spreads %s evenly', (_, name) => {
    const counts = new Array<number>(SEGMENTS).fill(0);
    const buyers = 100_000;
    for (let i = 0; i < buyers; i++) counts[homeSegment(name(i), SEGMENTS)]! += 1;
    const expected = buyers / SEGMENTS;
    const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    expect(chiSquare).toBeLessThan(BOUND);
  });
});
