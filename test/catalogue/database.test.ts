import { describe, expect, test } from 'vitest';
import type { SellingRow } from '../../catalogue/parts/contract.ts';
import { a1 } from '../../catalogue/sql-row/a1-check-then-decrement.ts';
import { a2 } from '../../catalogue/sql-row/a2-optimistic-version.ts';
import { a3 } from '../../catalogue/sql-row/a3-guarded-decrement.ts';
import { a4 } from '../../catalogue/sql-row/a4-select-for-update.ts';
import { a5 } from '../../catalogue/sql-row/a5-count-then-insert.ts';
import { a6 } from '../../catalogue/sql-row/a6-count-in-mutex.ts';
import { allAtOnce, buyers, lastUnit } from './interleavings.ts';
import { buyersOf, byId, Lab, tally } from './lab.ts';

describe('two buyers for the last unit', () => {
  test('A1 sells it to both, and the stock is -1', async () => {
    expect(await lastUnit(a1, 2, 'read')).toEqual({ atOnce: 2, outcomes: { sold: 2 }, sold: 2, left: -1 });
  });

  test('A2 sells it to one; the other fails', async () => {
    expect(await lastUnit(a2, 2, 'read')).toEqual({
      atOnce: 2,
      outcomes: { sold: 1, failed: 1 },
      sold: 1,
      left: 0,
    });
  });

  test.each([
    ['A3', a3, 'taken'],
    ['A4', a4, 'read'],
  ] as const)('%s sells it to one; the other waits, and finds it gone', async (_, row, point) => {
    expect(await lastUnit(row, 2, point)).toEqual({
      atOnce: 1,
      outcomes: { sold: 1, sold_out: 1 },
      sold: 1,
      left: 0,
    });
  });
});

describe('many at once for 100 units', () => {
  test('A1 sells 200 to 200, down to -100', async () => {
    await using lab = await Lab.open(a1, { stock: 100 });
    const node = await lab.node();
    expect(tally(await allAtOnce(lab, [node], buyers(200), 'read'))).toEqual({ sold: 200 });
    expect(await node.left()).toBe(-100);
  });

  test('A2 fails 99 of 100, although there is one for each', async () => {
    await using lab = await Lab.open(a2, { stock: 100 });
    const node = await lab.node();
    expect(tally(await allAtOnce(lab, [node], buyers(100), 'read'))).toEqual({ sold: 1, failed: 99 });
    expect(await node.left()).toBe(99);
  });

  test.each(byId(a3, a4))('%s sells exactly 100 of them, and refuses the other 100', async (_, row) => {
    await using lab = await Lab.open(row, { stock: 100 });
    const nodes = await lab.nodes(2);
    const outcomes = await Promise.all(buyers(200).map((buyerId, i) => nodes[i % 2]!.sell(buyerId)));
    expect(tally(outcomes)).toEqual({ sold: 100, sold_out: 100 });
    expect(await nodes[0]!.left()).toBe(0);
    expect(new Set(buyersOf(await nodes[0]!.sold())).size).toBe(100);
  });
});

describe('one buyer, two requests at once', () => {
  async function twice(row: SellingRow, nodeCount: number) {
    await using lab = await Lab.open(row, { stock: 10 });
    const nodes = await lab.nodes(nodeCount);
    const outcomes = await allAtOnce(lab, nodes, ['ann', 'ann'], 'counted');
    return {
      outcomes: tally(outcomes),
      sold: buyersOf(await nodes[0]!.sold()),
      left: await nodes[0]!.left(),
    };
  }
  const twoOrders = { outcomes: { sold: 2 }, sold: ['ann', 'ann'], left: 8 };
  const oneOrder = { outcomes: { sold: 1, limit_reached: 1 }, sold: ['ann'], left: 9 };

  test('A5 gives the buyer two orders', async () => {
    expect(await twice(a5, 1)).toEqual(twoOrders);
  });

  test('A6 gives the buyer one order on one node', async () => {
    expect(await twice(a6, 1)).toEqual(oneOrder);
  });

  test('A6 gives the buyer two orders on two nodes', async () => {
    expect(await twice(a6, 2)).toEqual(twoOrders);
  });
});
