/** A sale that is gone, with purchases in every state. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Recall } from '../../../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../../../src/engine/errors.ts';
import { PARKED_MAX_MS } from '../../../../../src/engine/purchase/parking.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import {
  advance,
  anOrder,
  answers,
  board,
  buy,
  codes,
  directory,
  engine,
  faults,
  LIVES_MS,
  learn,
  listener,
  SLOT,
  stageEngine,
  start,
  takes,
  uncommitted,
  viewOf,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import { SHORT, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageEngine();

describe('a sale that is gone', () => {
  beforeEach(() => learn());

  it('gets no purchases any more: they are answered as for a sale that never was', async () => {
    listener.gone('sale');
    directory.lookup.mockResolvedValue(undefined);
    const anna = buy();
    await settledTurns();
    expect(codes(anna)).toEqual(['unknown_sale']);
    expect(engine.asksForToken('sale')).toBe(true);
    expect(engine.isShedding('sale')).toBe(false);
    expect([...engine.laneDepths()]).toEqual([]);
    expect(await engine.view('sale')).toBeUndefined();
    expect(await engine.findOrder('anna', '900', 1_000)).toBeUndefined();
    expect(takes.asks).toEqual([]);
  });

  it('and that this worker never knew is nothing new', async () => {
    listener.gone('other');
    buy();
    await takes.next();
  });

  it('sells again when it was made again', async () => {
    buy();
    const old = await takes.next();
    listener.gone('sale');
    learn({}, 'open', 5);
    const ben = buy({ key: 'again' });
    const ask = await takes.next();
    expect(ask.batch.generation).toBe(5);
    await ask.serve([TAKEN], { seq: 1 });
    await old.refuse('stale');
    advance(1, { generation: 5 });
    expect(codes(ben)).toEqual(['committed']);
  });

  it('answers a purchase in flight as its segment does', async () => {
    const anna = buy();
    const ask = await takes.next();
    listener.gone('sale');
    await ask.refuse('closed');
    expect(codes(anna)).toEqual(['ended']);
  });

  it('lets a purchase in flight whose segment is gone wait until its deadline: the loss may be repaired', async () => {
    const anna = buy();
    const ask = await takes.next();
    listener.gone('sale');
    await ask.refuse('stale');
    expect(codes(anna)).toEqual(['waits']);
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['unavailable']);
    await elapse(PARKED_MAX_MS);
    expect(vi.getTimerCount()).toBe(0);
    expect(faults).toEqual([]);
  });

  it('has a parked purchase wait for its deadline', async () => {
    const anna = buy({ buyerId: 'anna' });
    await (await takes.next()).refuse('stale');
    const late = buy({ buyerId: 'late' });
    listener.gone('sale');
    await elapse(LIVES_MS + 50);
    expect(codes(anna, late)).toEqual(['unavailable', 'unavailable']);
  });

  it('leaves a purchase whose reply was lost unknown', async () => {
    const anna = buy();
    const ask = await takes.next();
    listener.gone('sale');
    await ask.loseReply();
    await elapse(50);
    await (await takes.next()).refuse('stale');
    await elapse(LIVES_MS);
    expect(codes(anna)).toEqual(['unknown']);
  });

  it('leaves those unknown who wait for a commit, and has Postgres asked about their orders', async () => {
    const anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    listener.gone('sale');
    expect(codes(anna)).toEqual(['unknown']);
    expect(uncommitted).toEqual(['1001']);
  });

  it('has Postgres asked about an order that was accepted, but not about one that is committed', async () => {
    buy({ buyerId: 'anna' });
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(1);
    buy({ buyerId: 'anna', awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 2 });
    listener.gone('sale');
    expect(uncommitted).toEqual(['1002']);
  });

  it('has Postgres asked about an order of which it hears late', async () => {
    const [anna, ben] = [buy({ buyerId: 'anna' }), buy({ buyerId: 'anna', awaitCommit: false })];
    const ask = await takes.next();
    listener.gone('sale');
    await ask.serve([TAKEN], { seq: 1 });
    expect(codes(anna, ben)).toEqual(['unknown', 'accepted']);
    expect(uncommitted).toEqual(['1001', '1002']);
  });

  it('leaves a repeated purchase unavailable whose record is gone', async () => {
    learn({}, 'closed');
    let answer = (_: Error) => {};
    answers.recall = () => new Promise((_, reject) => (answer = reject));
    const anna = buy({ key: 'click' });
    await settledTurns();
    listener.gone('sale');
    answers.recall = () => Promise.reject(new StaleGeneration('sale', 1));
    answer(new StaleGeneration('sale', 1));
    await settledTurns();
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['unavailable']);
  });

  it('leaves a repeated purchase unknown whose order is in the record, which came late', async () => {
    learn({}, 'closed');
    let answer = (_: Recall) => {};
    answers.recall = () => new Promise((resolve) => (answer = resolve));
    const anna = buy({ key: 'click' });
    await settledTurns();
    listener.gone('sale');
    answer({ committed: 4, holdings: [{ buyerId: 'anna', orders: [anOrder({ seq: 5 })] }] });
    await settledTurns();
    expect(codes(anna)).toEqual(['unknown']);
    expect(uncommitted).toEqual(['900']);
  });

  it('is not said to be sold out because its slot has another sale now', async () => {
    await start({ durable: true }, { requestDeadlineMs: 3 * PARKED_MAX_MS });
    learn();
    const anna = buy();
    const ask = await takes.next();
    listener.gone('sale');
    await ask.refuse('stale');
    await elapse(PARKED_MAX_MS - 100);
    board.close(SLOT, 9, monotonicMs());
    await elapse(100);
    await (await takes.next()).refuse('stale');
    expect(codes(anna)).toEqual(['waits']);
  });

  it.each<[string, () => void]>([
    ['is gone', () => listener.gone('sale')],
    [
      'has another generation, whose slot is another one',
      () => listener.changed({ ...viewOf({}, 'open', 2), slot: -1 }),
    ],
    ['has another generation, which has got its slot again', () => learn({}, 'open', 2)],
    [
      'is gone and was made again in the same slot',
      () => {
        listener.gone('sale');
        learn({}, 'open', 2);
      },
    ],
  ])('does not close its slot when a refill finds nothing left and the sale %s', async (_, change) => {
    buy();
    await (await takes.next()).serve([SHORT]);
    const refill = await takes.next();
    change();
    // The directory has cleared the slot and given it to another sale.
    board.clear(SLOT);
    board.learn(SLOT, 1, monotonicMs());
    await refill.serve([SHORT], { total: 0, epoch: 8 });
    expect([board.epoch(SLOT), board.isClosed(SLOT)]).toEqual([1, false]);
  });
});
