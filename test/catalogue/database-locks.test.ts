import { describe, expect, test } from 'vitest';
import { b12 } from '../../catalogue/locked/b12-advisory-lock.ts';
import { b13AfterCommit } from '../../catalogue/locked/b13-after-commit.ts';
import { b13BeforeCommit } from '../../catalogue/locked/b13-before-commit.ts';
import type { SellingRow } from '../../catalogue/parts/contract.ts';
import { buyers, lastUnit } from './interleavings.ts';
import { buyersOf, Lab, tally } from './lab.ts';

describe('B12, an advisory lock', () => {
  test('runs one purchase after the other', async () => {
    const oneAfterTheOther = { atOnce: 1, outcomes: { sold: 1, sold_out: 1 }, sold: 1, left: 0 };
    expect(await lastUnit(b12, 2, 'read')).toEqual(oneAfterTheOther);
  });

  test('sells exactly 100 units to 200 concurrent buyers', async () => {
    await using lab = await Lab.open(b12, { stock: 100 });
    const nodes = await lab.nodes(2);
    const outcomes = await Promise.all(buyers(200).map((buyerId, i) => nodes[i % 2]!.sell(buyerId)));
    expect(tally(outcomes)).toEqual({ sold: 100, sold_out: 100 });
  });

  test('is held by the session and freed when that ends; a session that ended can’t write', async () => {
    await using lab = await Lab.open(b12, { stock: 10 });
    const [hers, his] = await lab.nodes(2);
    const ann = hers!.begin('ann', 'read');
    await lab.atRest(ann);
    const bob = his!.begin('bob');
    await lab.atRest(bob);
    // Bob's call is at no point and does not sleep: its session waits in Postgres, without a time limit.
    expect(bob.state).toBe('running');
    await hers!.die();
    expect(await bob.outcome).toEqual({ code: 'sold' });
    await expect(ann.finish()).rejects.toThrow(/connection/i);
    expect(buyersOf(await his!.sold())).toEqual(['bob']);
    expect(await his!.left()).toBe(9);
  });
});

describe('B13, one buyer with two requests, the second while the first has not committed', () => {
  async function twice(row: SellingRow) {
    await using lab = await Lab.open(row, { stock: 10 });
    const [one, other] = await lab.nodes(2);
    const first = one!.begin('ann', 'uncommitted');
    await lab.atRest(first);
    const second = other!.begin('ann');
    await lab.atRest(second);
    const outcomes = await lab.finish(first, second);
    return { outcomes: tally(outcomes), sold: buyersOf(await one!.sold()) };
  }

  test('gives the buyer two orders if the lock is released before the commit', async () => {
    expect(await twice(b13BeforeCommit)).toEqual({ outcomes: { sold: 2 }, sold: ['ann', 'ann'] });
  });

  test('gives the buyer one order if the lock is released after it', async () => {
    const once = { outcomes: { sold: 1, limit_reached: 1 }, sold: ['ann'] };
    expect(await twice(b13AfterCommit)).toEqual(once);
  });
});
