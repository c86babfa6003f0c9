import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Move, TakeOrder } from '../../../../src/engine/contract.ts';
import { splitEvenly } from '../../../../src/engine/sale/split-evenly.ts';
import { isUneven, planMoves, planRefill, wantOf } from '../../../../src/engine/sale/transfer-plan.ts';

const segments = fc.array(fc.integer({ min: 0, max: 2 ** 31 }), { minLength: 1, maxLength: 64 });

/** Units left after the moves. At each move, the donor must have that many units. */
function after(lefts: readonly number[], moves: readonly Move[]): number[] {
  const now = [...lefts];
  for (const { from, to, units } of moves) {
    expect(units, 'units of a move').toBeGreaterThan(0);
    expect(from).not.toBe(to);
    expect(now[from]!, `segment ${from} gives ${units}`).toBeGreaterThanOrEqual(units);
    now[from]! -= units;
    now[to]! += units;
  }
  return now;
}

const descending = (values: readonly number[]) => [...values].sort((a, b) => b - a);
const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

describe('planMoves', () => {
  it('makes any stock as even as a new sale is, in fewer moves than there are segments', () => {
    fc.assert(
      fc.property(segments, (lefts) => {
        const moves = planMoves(lefts);
        expect(descending(after(lefts, moves))).toEqual(splitEvenly(sum(lefts), lefts.length));
        expect(moves.length).toBeLessThan(lefts.length);
      }),
    );
  });

  it('moves nothing twice: a donor does not receive', () => {
    fc.assert(
      fc.property(segments, (lefts) => {
        const moves = planMoves(lefts);
        const donors = new Set(moves.map(({ from }) => from));
        expect(moves.filter(({ to }) => donors.has(to))).toEqual([]);
      }),
    );
  });

  it.each([[[3, 2, 2]], [[2, 3, 2]], [[0, 0, 1]], [[5]], [[0, 0]]])(
    'does not change %j: it is even already',
    (lefts) => {
      expect(planMoves(lefts)).toEqual([]);
    },
  );

  it.each<[number[], [from: number, to: number, units: number][]]>([
    [
      [1, 9, 0, 14],
      [
        [3, 2, 6],
        [3, 0, 2],
        [1, 0, 3],
      ],
    ],
    [
      [2, 0, 9, 9],
      [
        [2, 1, 4],
        [3, 1, 1],
        [3, 0, 3],
      ],
    ],
    [
      [20, 0, 4, 12],
      [
        [0, 1, 9],
        [0, 2, 2],
        [3, 2, 3],
      ],
    ],
    // The richest keeps the remainder, so its surplus is not the largest.
    [
      [9, 9, 0, 3],
      [
        [1, 2, 4],
        [0, 2, 1],
        [0, 3, 2],
      ],
    ],
  ])('of %j pairs the largest surplus with the largest gap', (lefts, moves) => {
    expect(planMoves(lefts)).toEqual(moves.map(([from, to, units]) => ({ from, to, units })));
  });

  it('serves the poorest from the richest, in one move where one is enough', () => {
    expect(planMoves([0, 10, 5, 5])).toEqual([{ from: 1, to: 0, units: 5 }]);
    expect(planMoves([0, 12, 0, 0])).toEqual([
      { from: 1, to: 0, units: 3 },
      { from: 1, to: 2, units: 3 },
      { from: 1, to: 3, units: 3 },
    ]);
  });
});

describe('planRefill', () => {
  it('covers what is missing, as far as the stock allows', () => {
    fc.assert(
      fc.property(segments, fc.nat(), fc.integer({ min: 1, max: 1_000 }), (lefts, pick, units) => {
        const receiver = pick % lefts.length;
        const moves = planRefill(lefts, { receiver, least: 1, units });
        const now = after(lefts, moves);
        expect(now[receiver]).toBeGreaterThanOrEqual(Math.min(units, sum(lefts)));
        expect(moves.every(({ to }) => to === receiver)).toBe(true);
      }),
    );
  });

  it('moves nothing if the sale has less than the smallest order needs, or the segment has enough', () => {
    expect(planRefill([0, 1, 1], { receiver: 0, least: 3, units: 6 })).toEqual([]);
    expect(planRefill([2, 9], { receiver: 0, least: 1, units: 2 })).toEqual([]);
  });
});

describe('a refill', () => {
  it.each<[number[], number, [from: number, units: number][]]>([
    // Half of what the richest has, rounded up.
    [[0, 10, 4], 3, [[1, 5]]],
    [[0, 9, 4], 3, [[1, 5]]],
    [[2, 10, 4], 3, [[1, 5]]],
    // Or what is missing, if that is more.
    [[0, 4, 10], 8, [[2, 8]]],
    [
      [0, 4, 10],
      12,
      [
        [2, 10],
        [1, 2],
      ],
    ],
    // All, if that is not enough.
    [
      [1, 4, 10],
      99,
      [
        [2, 10],
        [1, 4],
      ],
    ],
    // The segment that needs units gives none, even if it has most.
    [[5, 2, 0], 6, [[1, 1]]],
  ])('of the first of %j, which needs %i, takes %j', (lefts, units, moves) => {
    expect(planRefill(lefts, { receiver: 0, least: 1, units })).toEqual(
      moves.map(([from, moved]) => ({ from, to: 0, units: moved })),
    );
  });

  it('gives the last units, if they are enough for the smallest order', () => {
    expect(planRefill([0, 1, 1], { receiver: 0, least: 2, units: 6 })).toHaveLength(2);
  });

  it('is for all orders of a segment, and for the smallest at least', () => {
    const order = (quantity: number) => ({ quantity }) as TakeOrder;
    expect(wantOf(3, [order(4), order(2), order(5)])).toEqual({ receiver: 3, least: 2, units: 11 });
  });
});

describe('isUneven', () => {
  it.each([
    [[3, 10, 10], true],
    [[5, 10, 9], false],
    [[0, 2], true],
    [[0, 1], false],
    [[0, 0, 0], false],
    [[7], false],
  ])('%j: %s', (lefts, uneven) => {
    expect(isUneven(lefts)).toBe(uneven);
  });
});
