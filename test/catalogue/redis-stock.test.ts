import { describe, expect, test } from 'vitest';
import { b7 } from '../../catalogue/locked/b7-watchdog.ts';
import { b8 } from '../../catalogue/locked/b8-fencing-token.ts';
import { c1 } from '../../catalogue/redis/c1-incident.ts';
import { c2 } from '../../catalogue/redis/c2-atomic-decrement.ts';
import { c3 } from '../../catalogue/redis/c3-script.ts';
import { c4 } from '../../catalogue/redis/c4-stock-per-node.ts';
import { allAtOnce, buyers, crowdOfBuyers, hangingCheck } from './interleavings.ts';
import { buyersOf, byId, Lab, tally } from './lab.ts';

const ordersOf = (lab: Lab) => `${lab.stores.keyPrefix}{sale}:orders`;

describe('the incident: 100 units, and a user check that hangs for longer than the lock of ten seconds', () => {
  test('C1 sells 200, and its counter ends at 0', async () => {
    expect(await hangingCheck(c1, 100, 100)).toEqual({ outcomes: { sold: 200 }, sold: 200, left: 0 });
  });

  test('C1 is then sold out: it has sold each unit to two buyers', async () => {
    expect(await hangingCheck(c1, 3, 4)).toMatchObject({ outcomes: { sold: 6, sold_out: 2 } });
  });

  test.each(byId(b7, b8, c2, c3))('%s sells 100, and refuses the other 100', async (_, row) => {
    const sold = { outcomes: { sold: 100, sold_out: 100 }, sold: 100, left: 0 };
    expect(await hangingCheck(row, 100, 100)).toEqual(sold);
  });
});

describe('200 concurrent buyers for 100 units', () => {
  test.each(byId(c2, c3, c4))('%s sells exactly 100, and refuses the other 100', async (_, row) => {
    await using lab = await Lab.open(row, { stock: 100, nodes: 2 });
    const nodes = await lab.nodes(2);
    const outcomes = await allAtOnce(lab, nodes, buyers(200), 'taken');
    expect(tally(outcomes)).toEqual({ sold: 100, sold_out: 100 });
    expect(new Set(buyersOf(await nodes[0]!.sold())).size).toBe(100);
    expect(await nodes[0]!.left()).toBe(0);
  });

  test('C1 refuses most of them as "too many people"', async () => {
    await using lab = await Lab.open(c1, { stock: 100 });
    const outcomes = await allAtOnce(lab, await lab.nodes(2), buyers(200), 'read');
    expect(tally(outcomes)).toEqual({ sold: 1, failed: 199 });
  });
});

describe('C2', () => {
  test('counts below zero while refusals are under way, and then returns to zero', async () => {
    await using lab = await Lab.open(c2, { stock: 1 });
    const node = await lab.node();
    const calls = ['ann', 'bob', 'cid'].map((buyerId) => node.begin(buyerId, 'taken'));
    await lab.atRest(...calls);
    expect(await node.left()).toBe(-2);
    expect(tally(await lab.finish(...calls))).toEqual({ sold: 1, sold_out: 2 });
    expect(await node.left()).toBe(0);
  });

  test('gives back the unit of a sale that failed, also while others are refused, and sells it', async () => {
    await using lab = await Lab.open(c2, { stock: 1 });
    const node = await lab.node();
    const ann = node.begin('ann', 'taken');
    await lab.atRest(ann);
    const bob = node.begin('bob', 'taken');
    await lab.atRest(bob);
    await lab.redis.set(ordersOf(lab), 'not a list: no order can be recorded');
    expect((await ann.finish()).code).toBe('failed');
    await lab.redis.del(ordersOf(lab));
    expect(await bob.finish()).toEqual({ code: 'sold_out' });
    expect(await node.sell('cid')).toEqual({ code: 'sold' });
    expect(await node.left()).toBe(0);
  });

  test('loses the unit of a node that dies between decrement and order', async () => {
    await using lab = await Lab.open(c2, { stock: 1 });
    const [hers, his] = await lab.nodes(2);
    await lab.atRest(hers!.begin('ann', 'taken'));
    await hers!.die();
    expect(await his!.sell('bob')).toEqual({ code: 'sold_out' });
    expect(await his!.sold()).toEqual([]);
  });
});

describe('C3', () => {
  test('gives a buyer one unit, however many concurrent requests the buyer sends', async () => {
    await using lab = await Lab.open(c3, { stock: 10 });
    const nodes = await lab.nodes(2);
    const outcomes = await Promise.all([...nodes, ...nodes].map((node) => node.sell('ann')));
    expect(tally(outcomes)).toEqual({ sold: 1, limit_reached: 3 });
  });

  test('sells 100 units to 100 buyers in a crowd of 500 who send 20,000 requests', async () => {
    expect(await crowdOfBuyers(c3, 1)).toEqual({ answered: 20_000, sold: 100, buyers: 100 });
  });
});

describe('C4', () => {
  test('undersells when a node dies: its share is gone, and buyers are refused', async () => {
    await using lab = await Lab.open(c4, { stock: 100, nodes: 2 });
    const [hers, his] = await lab.nodes(2);
    await Promise.all(buyers(10).map((buyerId) => hers!.sell(buyerId)));
    await hers!.die();
    const outcomes = await Promise.all(buyers(100).map((buyerId) => his!.sell(buyerId)));
    expect(tally(outcomes)).toEqual({ sold: 50, sold_out: 50 });
    expect((await his!.sold()).length).toBe(60);
  });

  test('undersells when the crowd is at one node only: the other node’s share is left', async () => {
    await using lab = await Lab.open(c4, { stock: 100, nodes: 2 });
    const [idle, busy] = await lab.nodes(2);
    const outcomes = await Promise.all(buyers(100).map((buyerId) => busy!.sell(buyerId)));
    expect(tally(outcomes)).toEqual({ sold: 50, sold_out: 50 });
    expect(await idle!.left()).toBe(50);
  });

  test('gives no units to a node beyond the agreed number', async () => {
    await using lab = await Lab.open(c4, { stock: 3, nodes: 2 });
    const nodes = await lab.nodes(3);
    const shares = await Promise.all(nodes.map((node) => node.left()));
    expect(shares.sort()).toEqual([0, 1, 2]);
  });
});
