import { describe, expect, test } from 'vitest';
import { draw, drawInSteps, MAX_ENTRIES, RanksByNumber } from '../../../../src/queue/draw/drawn-order.ts';
import { below, RandomNumbers } from '../../../../src/queue/draw/random-numbers.ts';

const SEED = Uint8Array.from({ length: 32 }, (_, i) => i);
const HASH = Buffer.from(SEED.map((byte) => byte + 32)).toString('hex');

/** A hash of entries that differs in each round. */
const hashOf = (round: number) => round.toString(16).padStart(64, '0');
const orderOf = (entries: number, entriesHash = HASH, seed = SEED) => [
  ...draw({ seed, entriesHash, entries }).array,
];

describe('the order', () => {
  // Calculated by test/support/queue/draw.py.
  const OF_20 = [8, 5, 3, 7, 9, 12, 2, 18, 16, 14, 6, 17, 11, 20, 10, 15, 19, 4, 13, 1];

  test('of a known seed and hash is known', () => expect(orderOf(20)).toEqual(OF_20));

  test.each([[0], [1], [2], [1_000]])('of %d entries has each number once', (entries) => {
    const sorted = orderOf(entries).sort((one, other) => one - other);
    expect(sorted).toEqual(Array.from({ length: entries }, (_, i) => i + 1));
  });

  test('is another one with another seed, and with another hash', () => {
    expect(orderOf(20, HASH, SEED.with(31, 0))).not.toEqual(OF_20);
    expect(orderOf(20, hashOf(1))).not.toEqual(OF_20);
  });

  test('is the same in steps', () => {
    const steps = drawInSteps({ seed: SEED, entriesHash: HASH, entries: 25_000 });
    expect([steps.next().done, steps.next().done]).toEqual([false, false]);
    const last = steps.next();
    expect(last.done && [...last.value.array]).toEqual(orderOf(25_000));
  });

  test.each([-1, 0.5, Number.NaN, MAX_ENTRIES + 1])('of %d entries is refused', (entries) => {
    expect(() => orderOf(entries)).toThrow(`a draw of ${entries} entries: must be a whole number from 0 to`);
  });
});

describe('ranks and numbers', () => {
  const numbers = draw({ seed: SEED, entriesHash: HASH, entries: 20 });
  const ranks = numbers.ranksByNumber();

  test('begin at 1, and each is found by the other', () => {
    expect([numbers.numberAt(1), numbers.numberAt(20)]).toEqual([8, 1]);
    expect([ranks.rankOf(8), ranks.rankOf(1)]).toEqual([1, 20]);
    for (let rank = 1; rank <= 20; rank++) expect(ranks.rankOf(numbers.numberAt(rank))).toBe(rank);
  });

  test.each([0, 21, -1, 1.5])('there is no place %d', (place) => {
    expect(() => numbers.numberAt(place)).toThrow(`rank ${place} of a draw of 20 entries`);
    expect(() => ranks.rankOf(place)).toThrow(`number ${place} of a draw of 20 entries`);
  });

  test('have 4 bytes for each place, which threads share', () => {
    expect(ranks.array.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect([numbers.array.byteLength, ranks.array.byteLength]).toEqual([80, 80]);
    expect(new RanksByNumber(ranks.array).rankOf(8)).toBe(1);
  });
});

describe('every order is equally likely', () => {
  const ROUNDS = 12_000;
  // Chi-square that chance exceeds once in a thousand times, by its degrees of freedom. The rounds are always the same.
  const LIMITS: Readonly<Record<number, number>> = { 1: 10.83, 5: 20.52, 23: 49.73, 119: 173.62 };

  function chiSquare(shuffled: (round: number) => readonly number[], orders: number): number {
    const counts = new Map<string, number>();
    for (let round = 0; round < ROUNDS; round++) {
      const order = shuffled(round).join(' ');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    const expected = ROUNDS / orders;
    const seen = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    return seen + (orders - counts.size) * expected;
  }

  test.each([
    [2, 2],
    [3, 6],
    [4, 24],
    [5, 120],
  ])('of %d numbers: %d orders', (entries, orders) => {
    const found = chiSquare((round) => orderOf(entries, hashOf(round)), orders);
    expect(found).toBeLessThan(LIMITS[orders - 1]!);
  });

  test('and the same measure finds the usual wrong shuffle, which swaps each place with any other', () => {
    const wrong = (round: number) => {
      const { word } = new RandomNumbers(SEED, hashOf(round));
      const numbers = [1, 2, 3];
      for (let i = 0; i < 3; i++) {
        const chosen = below(3, word);
        [numbers[i], numbers[chosen]] = [numbers[chosen]!, numbers[i]!];
      }
      return numbers;
    };
    expect(chiSquare(wrong, 6)).toBeGreaterThan(LIMITS[5]!);
  });
});

describe('random numbers', () => {
  test('are known, also beyond the first block', () => {
    const { word } = new RandomNumbers(SEED, HASH);
    // Calculated by test/support/queue/draw.py.
    expect(Array.from({ length: 10 }, word)).toEqual([
      3074993920, 3564109749, 3931835925, 114803290, 1448553630, 2275127259, 3258090500, 3539593977,
      3018526666, 2884076552,
    ]);
  });

  test.each([
    { bound: 3, words: [2 ** 32 - 1, 2 ** 32 - 2], drawn: 2 },
    { bound: 2 ** 31 + 1, words: [2 ** 31 + 1, 2 ** 32 - 1, 2 ** 31], drawn: 2 ** 31 },
    { bound: 4, words: [2 ** 32 - 1], drawn: 3 },
    { bound: 1, words: [2 ** 32 - 1], drawn: 0 },
  ])('below $bound: words that would favour small numbers are skipped', ({ bound, words, drawn }) => {
    const left = [...words];
    expect(below(bound, () => left.shift()!)).toBe(drawn);
    expect(left).toEqual([]);
  });
});
