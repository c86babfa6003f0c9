/** How purchases and the engine end: deadlines, and closing. */
import { describe, expect, it, vi } from 'vitest';
import {
  advance,
  buy,
  codes,
  engine,
  events,
  LIVES_MS,
  learn,
  lookingUp,
  neighbours,
  stageEngine,
  start,
  takes,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import { aPurchase } from '../../../../support/engine/purchases.ts';
import { SHORT, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageEngine();

describe('the deadline', () => {
  it.each([
    ['queued', true, 'busy'],
    ['sent', true, 'unknown'],
    ['taken', true, 'accepted'],
    ['taken', false, 'unknown'],
  ])('of a purchase that is %s (durable: %s) makes it %s', async (phase, durable, code) => {
    await start({ durable });
    learn();
    const [first, near] = neighbours();
    const bought = buy({ buyerId: first });
    const ask = await takes.next();
    if (phase === 'taken') await ask.serve([TAKEN]);
    const judged = phase === 'queued' ? buy({ buyerId: near }) : bought;
    await elapse(LIVES_MS + 50);
    expect(codes(judged)).toEqual([code]);
  });

  it('settles a purchase once, whatever comes later', async () => {
    learn();
    const anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    await elapse(LIVES_MS + 50);
    advance(1);
    expect(codes(anna)).toEqual(['accepted']);
  });
});

describe('closing', () => {
  it('waits for purchases under way, and leaves no timer', async () => {
    learn();
    const anna = buy();
    const ask = await takes.next();
    const closed = vi.fn();
    const closing = engine.close().then(closed);
    await ask.serve([TAKEN], { seq: 1 });
    expect(closed).not.toHaveBeenCalled();
    advance(1);
    await closing;
    expect(codes(anna)).toEqual(['committed']);
    expect([events, vi.getTimerCount()]).toEqual([[], 0]);
  });

  it('waits for purchases whose sale is being looked up', async () => {
    const found = lookingUp();
    const anna = buy();
    const closed = vi.fn();
    const closing = engine.close().then(closed);
    await settledTurns();
    expect(closed).not.toHaveBeenCalled();
    found();
    await closing;
    expect(codes(anna)).toEqual(['unknown_sale']);
  });

  it('takes no longer than the deadline of the last purchase', async () => {
    learn();
    buy();
    const closed = vi.fn();
    const closing = engine.close().then(closed);
    await elapse(LIVES_MS + 50);
    await closing;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('may be done twice, and while nothing is under way', async () => {
    learn();
    buy();
    const closing = Promise.all([engine.close(), engine.close(), engine.idle()]);
    await (await takes.next()).serve([{ kind: 'limit', orderIds: [] }]);
    await closing;
    await engine.close();
  });
});

describe('the promise of a purchase', () => {
  it('resolves with its outcome, also when the last unit decides', async () => {
    learn();
    const outcome = engine.purchase(aPurchase());
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 0 });
    expect(await outcome).toEqual({ code: 'sold_out' });
    expect(await engine.purchase(aPurchase())).toEqual({ code: 'sold_out' });
    expect(takes.asks).toHaveLength(2);
  });
});
