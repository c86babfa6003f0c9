import { describe, expect, test } from 'vitest';
import type { SellingRow } from '../../catalogue/parts/contract.ts';
import { c4 } from '../../catalogue/redis/c4-stock-per-node.ts';
import { d1 } from '../../catalogue/segments/d1-lock-per-segment.ts';
import { d2 } from '../../catalogue/segments/d2-script-per-segment.ts';
import { d3 } from '../../catalogue/segments/d3-stockade.ts';
import { homeSegment } from '../../src/engine/sale/home-segment.ts';
import { buyers, crowdOfBuyers } from './interleavings.ts';
import { buyersOf, byId, Lab, tally } from './lab.ts';

/** S4, and the ones after. */
const S4 = { stock: 1_000, segments: 10 };
const SEGMENTED = byId(d1, d2, d3);

describe('1,000 units in 10 segments', () => {
  test.each(SEGMENTED)('%s sells exactly 1,000 units to 1,100 concurrent buyers', async (_, row) => {
    await using lab = await Lab.open(row, S4);
    const nodes = await lab.nodes(2);
    const outcomes = await Promise.all(buyers(1_100).map((buyerId, i) => nodes[i % 2]!.sell(buyerId)));
    expect(tally(outcomes)).toEqual({ sold: 1_000, sold_out: 100 });
    expect(new Set(buyersOf(await nodes[0]!.sold())).size).toBe(1_000);
    expect(await nodes[0]!.left()).toBe(0);
  });

  test.each(SEGMENTED)('%s sells all of them to buyers of one segment', async (_, row) => {
    await using lab = await Lab.open(row, { stock: 20, segments: 10 });
    const nodes = await lab.nodes(2);
    const neighbours = buyers(1_000).filter((buyerId) => homeSegment(buyerId, 10) === 3);
    const outcomes = await Promise.all(
      neighbours.slice(0, 30).map((buyerId, i) => nodes[i % 2]!.sell(buyerId)),
    );
    expect(tally(outcomes)).toEqual({ sold: 20, sold_out: 10 });
  });

  test.each(SEGMENTED)(
    '%s sells the last unit to the first buyer, whichever segment has it',
    async (_, row) => {
      await using lab = await Lab.open(row, { stock: 1, segments: 10 });
      const [node] = await lab.nodes(1);
      const far = buyers(100).find((buyerId) => homeSegment(buyerId, 10) === 7)!;
      expect(await node!.sell(far)).toEqual({ code: 'sold' });
      expect(await node!.sell('late')).toEqual({ code: 'sold_out' });
    },
  );
});

describe('D1, how many purchases run at the same time', () => {
  async function inside(segments: number) {
    await using lab = await Lab.open(d1, { stock: 100, segments });
    const nodes = await lab.nodes(2);
    const oneOfEach = Array.from(
      { length: 10 },
      (_, home) => buyers(1_000).find((buyerId) => homeSegment(buyerId, 10) === home)!,
    );
    const calls = oneOfEach.map((buyerId, i) => nodes[i % 2]!.begin(buyerId, 'read'));
    await lab.atRest(...calls);
    return calls.filter(({ state }) => state === 'held').length;
  }

  test.each([1, 2, 10])('%i segments: as many', async (segments) => {
    expect(await inside(segments)).toBe(segments);
  });
});

describe('a node dies with half of the buyers', () => {
  async function halfway(row: SellingRow) {
    await using lab = await Lab.open(row, { stock: 100, segments: 10, nodes: 2 });
    const [dying, other] = await lab.nodes(2);
    await Promise.all(buyers(10).map((buyerId) => dying!.sell(buyerId)));
    await dying!.die();
    const late = Array.from({ length: 100 }, (_, i) => `late-${i}`);
    await Promise.all(late.map((buyerId) => other!.sell(buyerId)));
    return (await other!.sold()).length;
  }

  test('C4 leaves 40 of 100 units unsold', async () => {
    expect(await halfway(c4)).toBe(60);
  });

  test.each(SEGMENTED)('%s sells all 100', async (_, row) => {
    expect(await halfway(row)).toBe(100);
  });
});

describe('D3', () => {
  test('gives a buyer one unit, however many concurrent requests the buyer sends', async () => {
    await using lab = await Lab.open(d3, S4);
    const nodes = await lab.nodes(2);
    const outcomes = await Promise.all([...nodes, ...nodes].map((node) => node.sell('ann')));
    expect(tally(outcomes)).toEqual({ sold: 1, limit_reached: 3 });
  });

  test('sells 100 units to 100 buyers in a crowd of 500 who send 20,000 requests', async () => {
    const answer = { answered: 20_000, sold: 100, buyers: 100 };
    expect(await crowdOfBuyers(d3, 1, { segments: 8 })).toEqual(answer);
  });
});
