/** Segments that are short, and the refills of one sale. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Purchase } from '../../../../../src/engine/contract.ts';
import { Lane } from '../../../../../src/engine/purchase/lane.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import { elapse } from '../../../../support/engine/frozen-time.ts';
import {
  advance,
  board,
  buy,
  parts,
  SEGMENT,
  SEGMENTS,
  SENT_AGAIN_MS,
  sale,
  shortLived,
  stageLane,
  takes,
} from '../../../../support/engine/lane-stage.ts';
import { codesOf } from '../../../../support/engine/purchases.ts';
import { type Ask, SHORT, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('a segment that is short', () => {
  it('gets the short orders again, with a refill', async () => {
    buy('anna');
    buy('ben', { quantity: 2 });
    const first = await takes.next();
    await first.serve([TAKEN, SHORT]);
    const refill = await takes.next();
    expect(refill.refill).toBe(SEGMENTS);
    expect(refill.orders).toEqual([first.orders[1]]);
    expect(refill.batch.ticket).toBeGreaterThan(first.batch.ticket);
  });

  it('takes the units of the refill', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([TAKEN], { seq: 2, total: 5 });
    advance(2);
    expect(codesOf([anna])).toEqual(['committed']);
    expect(board.isSoldOut(0)).toBe(false);
  });

  it('makes the purchase sold out if the sale has no units, and closes the board', async () => {
    const pendings = [buy('anna'), buy('ben', { quantity: 2 })];
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 0, epoch: 4 });
    expect(codesOf(pendings)).toEqual(['sold_out', 'sold_out']);
    expect([board.isSoldOut(0), board.epoch(0)]).toEqual([true, 4]);
  });

  it('closes the board with the take that gets the last unit', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([TAKEN], { seq: 1, total: 0, epoch: 4 });
    expect(codesOf([anna])).toEqual(['waits']);
    expect(board.isSoldOut(0)).toBe(true);
  });

  it('does not close the board if units came back meanwhile', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    const refill = await takes.next();
    board.learn(0, 5, monotonicMs());
    await refill.serve([SHORT], { total: 0, epoch: 4 });
    expect(codesOf([anna])).toEqual(['sold_out']);
    expect(board.isSoldOut(0)).toBe(false);
  });

  it('tells the units that remain if the sale has too few', async () => {
    const anna = buy('anna', { quantity: 3 });
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 1 });
    expect(anna.told).toEqual([{ code: 'insufficient_stock', remaining: 1 }]);
    expect(board.isSoldOut(0)).toBe(false);
  });

  it('gets the order a third time if other segments had enough units for it', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 2 });
    await (await takes.next()).serve([TAKEN], { seq: 3, total: 1 });
    advance(3);
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it('gets the order a third time if other segments had just enough units for it', async () => {
    const anna = buy('anna', { quantity: 2 });
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 2 });
    expect(codesOf([anna])).toEqual(['waits']);
    expect((await takes.next()).buyers).toEqual(['anna']);
  });

  it('may refuse at the refill', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).refuse('paused');
    expect(codesOf([anna])).toEqual(['paused']);
  });

  it('makes the purchase unavailable if the refill was not executed: the first reply shows that nothing was taken', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).notExecuted();
    expect(codesOf([anna])).toEqual(['unavailable']);
  });
});

describe('refills of one sale', () => {
  let other: Lane;

  beforeEach(() => {
    other = new Lane(parts, sale, SEGMENT + 1);
  });

  /** Both lanes are short. The refill of the first is under way, and that of the second waits for it. */
  async function bothShort(spec: Partial<Purchase> = {}) {
    const [anna, ben] = [buy('anna'), buy('ben', spec, other)];
    const asks = [await takes.next(), await takes.next()];
    for (const ask of asks) await ask.serve([SHORT]);
    return { anna, ben, first: await takes.next() };
  }

  it('are made one at a time', async () => {
    const { ben, first } = await bothShort();
    expect(takes.asks).toHaveLength(3);
    expect(first.buyers).toEqual(['anna']);
    await first.serve([TAKEN], { seq: 1, total: 1 });
    const second = await takes.next();
    expect([second.buyers, second.refill]).toEqual([['ben'], SEGMENTS]);
    await second.serve([SHORT], { total: 0 });
    expect(codesOf([ben])).toEqual(['sold_out']);
  });

  it('are not made if the one before has found no units', async () => {
    const { anna, ben, first } = await bothShort();
    await first.serve([SHORT], { total: 0 });
    expect(codesOf([anna, ben])).toEqual(['sold_out', 'sold_out']);
    expect(takes.asks).toHaveLength(3);
    buy('cleo', { key: 'click' }, other);
    expect((await takes.next()).buyers).toEqual(['cleo']);
  });

  it('are made for a purchase with a key: the buyer’s record may hold its order', async () => {
    const { ben, first } = await bothShort({ key: 'click' });
    await first.serve([SHORT], { total: 0 });
    const second = await takes.next();
    await second.serve([{ kind: 'replay', orderId: '900', quantity: 1, seq: 3 }], { committed: 3 });
    expect(codesOf([ben])).toEqual(['committed']);
  });

  it('are made for an unconfirmed purchase: it may have taken the last units', async () => {
    const { ben, first } = await bothShort();
    await first.serve([TAKEN], { seq: 1, total: 1 });
    const lost = await takes.next();
    await lost.loseReply();
    board.close(0, 1, monotonicMs());
    await elapse(SENT_AGAIN_MS);
    const again = await takes.next();
    expect(again.orders).toEqual(lost.orders);
    const replay = { kind: 'replay', orderId: lost.orderIds[0]!, quantity: 1, seq: 9 } as const;
    await again.serve([replay], { committed: 9, total: 0 });
    expect(codesOf([ben])).toEqual(['committed']);
  });

  it('are made without purchases that expired while they waited', async () => {
    buy('anna');
    const early = buy('early', {}, other, shortLived);
    const ben = buy('ben', {}, other);
    for (const ask of [await takes.next(), await takes.next()]) await ask.serve([SHORT]);
    const first = await takes.next();
    await elapse(150);
    expect(codesOf([early, ben])).toEqual(['busy', 'waits']);
    await first.serve([TAKEN], { seq: 1, total: 1 });
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it.each<[string, (ask: Ask) => Promise<void>]>([
    ['is refused', (ask) => ask.notExecuted()],
    ['is lost', (ask) => ask.loseReply()],
    ['fails', (ask) => ask.fail(new Error('a bug'))],
  ])('continue after one that %s', async (_, fail) => {
    const { first } = await bothShort();
    await fail(first);
    expect((await takes.next()).buyers).toEqual(['ben']);
  });
});
