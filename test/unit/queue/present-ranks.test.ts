import { expect, test } from 'vitest';
import { presentRanks, rankBehindPresent } from '../../../src/queue/present-ranks.ts';

const LINE = { numberAt: (rank: number) => rank };
const even = { has: (number: number) => number % 2 === 0 };
const nobody = { has: () => false };

test('the first ranks that are present are found, as many as are asked for', async () => {
  expect(await presentRanks(LINE, even, { after: 2, last: 9 }, 2)).toEqual([4, 6]);
  expect(await presentRanks(LINE, even, { after: 2, last: 9 }, 9)).toEqual([4, 6, 8]);
  expect(await presentRanks(LINE, even, { after: 9, last: 9 }, 9)).toEqual([]);
});

test('the rank behind some present ones is the next one, whether it is present or not', async () => {
  const stretch = { after: 2, last: 9 };
  expect(await rankBehindPresent(LINE, even, stretch, 0)).toBe(3);
  expect(await rankBehindPresent(LINE, even, stretch, 2)).toBe(7);
  expect(await rankBehindPresent(LINE, even, stretch, 3)).toBe(9);
  expect(await rankBehindPresent(LINE, even, stretch, 4)).toBeUndefined();
});

test('others have their turn meanwhile', async () => {
  const stretch = { after: 0, last: 1_000_000 };
  for (const look of [
    () => presentRanks(LINE, nobody, stretch, 1),
    () => rankBehindPresent(LINE, nobody, stretch, 1),
  ]) {
    let turns = 0;
    const turn = () => {
      turns++;
      running = setImmediate(turn);
    };
    let running = setImmediate(turn);
    await look();
    clearImmediate(running);
    expect(turns).toBeGreaterThan(5);
  }
});
