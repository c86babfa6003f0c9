/** Batches that were not served, and a store that was away. */
import { describe, expect, it } from 'vitest';
import type { Outcome, TakeReply } from '../../../../../src/engine/contract.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import {
  advance,
  buy,
  check,
  ENDS_AT,
  events,
  faults,
  handedBack,
  LIVES_MS,
  lane,
  stageLane,
  takes,
  underWay,
} from '../../../../support/engine/lane-stage.ts';
import { aPurchase, codesOf } from '../../../../support/engine/purchases.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('a batch that was not served', () => {
  it.each<[Exclude<TakeReply['status'], 'served'>, Outcome]>([
    ['paused', { code: 'paused' }],
    ['closed', { code: 'ended', endedAt: ENDS_AT }],
    ['busy', { code: 'busy' }],
  ])('because of %s gives that outcome to all, and the lane continues', async (status, outcome) => {
    const pendings = [buy('anna'), buy('ben')];
    await (await takes.next()).refuse(status);
    expect(pendings.map(({ told }) => told)).toEqual([[outcome], [outcome]]);
    buy('cleo');
    expect((await takes.next()).buyers).toEqual(['cleo']);
  });

  it('because the store did not execute it is unavailable', async () => {
    const pendings = [buy('anna'), buy('ben')];
    await (await takes.next()).notExecuted();
    expect(codesOf(pendings)).toEqual(['unavailable', 'unavailable']);
    await elapse(LIVES_MS);
    expect(takes.asks).toHaveLength(1);
    expect(faults).toEqual([]);
  });

  it('because of an unexpected error is unknown, and the error is reported', async () => {
    const anna = buy('anna');
    const error = new Error('a bug');
    await (await takes.next()).fail(error);
    expect(codesOf([anna])).toEqual(['unknown']);
    expect(faults).toEqual([error]);
    buy('ben');
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it('because results are missing is unknown for those orders, and the fault is reported', async () => {
    const pendings = [buy('anna', { awaitCommit: false }), buy('ben')];
    await (await takes.next()).serve([TAKEN, undefined!]);
    expect(codesOf(pendings)).toEqual(['accepted', 'unknown']);
    expect(faults).toHaveLength(1);
  });

  it('because it was superseded is sent again with a much newer ticket', async () => {
    const anna = buy('anna');
    const first = await takes.next();
    await first.refuse('superseded');
    const again = await takes.next();
    expect(again.orders).toEqual(first.orders);
    expect(again.batch.ticket - first.batch.ticket).toBeGreaterThan(1_000_000);
    await again.serve([TAKEN], { seq: 4 });
    advance(4);
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it('because it was always superseded is sent again until its purchases expire', async () => {
    const anna = buy('anna');
    const tickets: number[] = [];
    // After the fourth attempt there is too little time for one that takes as long.
    for (let waited = 0; waited < LIVES_MS - 100; waited += 100) {
      const ask = await takes.next();
      tickets.push(ask.batch.ticket);
      await elapse(100);
      await ask.refuse('superseded');
    }
    expect(codesOf([anna])).toEqual(['waits']);
    await elapse(100);
    expect(tickets).toEqual([...new Set(tickets)].sort((a, b) => a - b));
    expect(codesOf([anna])).toEqual(['unknown']);
    expect(takes.asks).toHaveLength(tickets.length);
  });
});

describe('a store that was away', () => {
  it('is asked by an empty take whether it has lost the orders that are not committed yet', async () => {
    check();
    await settledTurns();
    expect(takes.asks).toEqual([]);
    const anna = buy('anna', { awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 5, orders: 9 });
    expect(codesOf([anna])).toEqual(['accepted']);

    check();
    const first = await takes.next();
    expect(first.orders).toEqual([]);
    expect(first.batch).toMatchObject({ newest: { seq: 5, tail: '1001', orders: 9 } });
    await first.serve([], { seq: 6, orders: 9 });
    check();
    // The empty take before was answered: a segment that does not remember its ticket has lost writes.
    const second = await takes.next();
    expect(second.batch).toMatchObject({ answeredTicket: first.batch.ticket, newest: first.batch.newest });
    await second.refuse('stale');

    advance(5);
    check();
    await elapse(5_000);
    expect(takes.asks).toHaveLength(3);
    expect(events.onBatch).toHaveBeenCalledTimes(1);
  });

  it('is asked after the purchases that wait already', async () => {
    const told = buy('anna', { awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 5, orders: 9 });
    expect(codesOf([told])).toEqual(['accepted']);
    const ben = underWay.begin(aPurchase({ buyerId: 'ben' }), () => {});
    lane.push(ben);
    check();
    const first = await takes.next();
    expect(first.buyers).toEqual(['ben']);
    expect(takes.asks).toHaveLength(2);
    await first.serve([TAKEN], { seq: 6, orders: 10 });
    expect((await takes.next()).orders).toEqual([]);
  });

  it('is not asked again after an error that is a bug, which is reported', async () => {
    buy('anna', { awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 5 });
    check();
    const bug = new Error('a bug');
    await (await takes.next()).fail(bug);
    expect([handedBack, faults]).toEqual([[], [bug]]);
  });

  it('must be asked again if it did not answer, and purchases do not wait for that', async () => {
    buy('anna', { awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 5, orders: 9 });
    check();
    await (await takes.next()).notExecuted();
    expect([handedBack, lane.isWaiting]).toEqual([[{ why: 'unchecked' }], false]);
    check();
    await (await takes.next()).loseReply();
    expect(handedBack).toEqual([{ why: 'unchecked' }, { why: 'unchecked' }]);
    const ben = buy('ben', { awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 6, orders: 10 });
    expect(codesOf([ben])).toEqual(['accepted']);
    check();
    const third = await takes.next();
    expect(third.orders).toEqual([]);
    await third.serve([], { seq: 7, orders: 10 });
    expect(handedBack).toHaveLength(2);
    expect(faults).toEqual([]);
  });
});
