/** Purchases that enter a lane again or leave it, because their segment or their sale is another one now. */
import { describe, expect, it } from 'vitest';
import type { HandedBack } from '../../../../../src/engine/purchase/settle.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import {
  advance,
  buy,
  checking,
  faults,
  handedBack,
  LIVES_MS,
  lane,
  learnGeneration,
  parts,
  readmit,
  SENT_AGAIN_MS,
  sale,
  stageLane,
  takes,
} from '../../../../support/engine/lane-stage.ts';
import { codesOf } from '../../../../support/engine/purchases.ts';
import { type Ask, SHORT, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('a purchase that was in a lane before', () => {
  it('keeps its order id, also while the worker may not name orders', async () => {
    buy('anna');
    const first = await takes.next();
    await first.refuse('outdated');
    parts.nextOrderId = () => {
      throw new Error('the lease is lost');
    };
    const [{ purchases }] = handedBack as [Extract<HandedBack, { why: 'outdated' }>];
    readmit(purchases[0]!);
    expect((await takes.next()).orderIds).toEqual(first.orderIds);
    expect(faults).toEqual([]);
  });
});

describe('a stale segment', () => {
  it('hands back the batch and the whole queue', async () => {
    const anna = buy('anna');
    const ask = await takes.next();
    const ben = buy('ben');
    await ask.refuse('stale');
    expect(handedBack).toEqual([{ why: 'stale', purchases: [anna, ben] }]);
    expect([anna.state, ben.state, lane.depth]).toEqual(['queued', 'queued', 0]);
    expect(takes.asks).toHaveLength(1);
  });

  it('hands back the batch if only the refill finds it stale', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).refuseRefill();
    expect(handedBack).toEqual([{ why: 'stale', purchases: [anna] }]);
    expect(anna.state).toBe('queued');
  });

  it('gets the same order again if the purchase returns to it', async () => {
    const anna = buy('anna');
    const first = await takes.next();
    await first.refuse('stale');
    readmit(anna);
    expect((await takes.next()).orders).toEqual(first.orders);
  });
});

describe('a retired lane', () => {
  it('hands over its queue', async () => {
    buy('anna');
    await takes.next();
    const queued = [buy('ben'), buy('cleo')];
    expect(lane.drain()).toEqual(queued);
    expect(lane.depth).toBe(0);
  });

  it.each<[string, (ask: Ask) => Promise<void>, boolean]>([
    ['was short', (ask) => ask.serve([SHORT]), false],
    ['got no reply', (ask) => ask.loseReply(), true],
    ['was superseded', (ask) => ask.refuse('superseded'), false],
  ])('hands back a purchase that %s', async (_, answer, isUnconfirmed) => {
    const anna = buy('anna');
    const ask = await takes.next();
    learnGeneration(2);
    await answer(ask);
    await elapse(SENT_AGAIN_MS);
    expect(handedBack).toEqual([{ why: 'stale', purchases: [anna] }]);
    expect(anna.isUnconfirmed).toBe(isUnconfirmed);
    expect(takes.asks).toHaveLength(1);
  });

  it('hands back nobody who was answered before the reply to the take', async () => {
    buy('anna');
    const ask = await takes.next();
    await elapse(LIVES_MS + 50);
    learnGeneration(2);
    await ask.serve([TAKEN], { seq: 3 });
    expect([checking, handedBack, lane.settlement.waiters.size]).toEqual([[], [], 0]);
  });

  it('does not make a refill that has waited for its turn', async () => {
    let begin = () => {};
    const busy = sale.refills(() => new Promise<void>((resolve) => (begin = resolve)));
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    learnGeneration(2);
    begin();
    await busy;
    await settledTurns();
    expect(handedBack).toEqual([{ why: 'stale', purchases: [anna] }]);
    expect(takes.asks).toHaveLength(1);
  });

  it('makes the buyers’ records be read for the orders that it has taken', async () => {
    const anna = buy('anna');
    const ask = await takes.next();
    learnGeneration(2);
    await ask.serve([TAKEN], { seq: 3, committed: 2 });
    advance(9);
    expect(codesOf([anna])).toEqual(['waits']);
    expect(checking).toEqual([anna]);
  });

  it('checks nobody if the sale is gone: nothing would tell', async () => {
    const anna = buy('anna');
    const ask = await takes.next();
    sale.isGone = true;
    await ask.serve([TAKEN], { seq: 3 });
    expect([codesOf([anna]), checking]).toEqual([['unknown'], []]);
  });

  it('commits an order that the record shows as committed', async () => {
    const anna = buy('anna', { key: 'click' });
    const ask = await takes.next();
    learnGeneration(2);
    await ask.serve([{ kind: 'replay', orderId: '900', quantity: 1, seq: 3 }], { seq: 4, committed: 3 });
    expect(codesOf([anna])).toEqual(['committed']);
  });
});

describe('another generation', () => {
  it('in a watermark settles nothing in this one', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(5, { generation: 2 });
    advance(5, { generation: 0 });
    expect(codesOf([anna])).toEqual(['waits']);
  });
});
