/** What a batch holds, and how a lane sends one after the other. */
import { describe, expect, it, vi } from 'vitest';
import { NO_ENTRY } from '../../../../../src/engine/contract.ts';
import { MAX_BATCH_ORDERS } from '../../../../../src/engine/limits.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import {
  advance,
  buy,
  buyers,
  check,
  events,
  LIVES_MS,
  lane,
  SEGMENT,
  shortLived,
  stageLane,
  takes,
  underWay,
} from '../../../../support/engine/lane-stage.ts';
import { aPurchase, codesOf } from '../../../../support/engine/purchases.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('a batch', () => {
  it('names the segment, the generation and the worker, and its orders', async () => {
    buy('anna', { quantity: 2, key: 'click' });
    const { batch, orders, refill } = await takes.next();
    expect(batch).toEqual({
      saleId: 'sale',
      segment: SEGMENT,
      generation: 1,
      lane: 7,
      ticket: Date.now() * 1_000,
      answeredTicket: 0,
      newest: NO_ENTRY,
      rules: '',
      sending: expect.any(Function),
    });
    expect(orders).toEqual([{ orderId: '1001', buyerId: 'anna', quantity: 2, key: 'click' }]);
    expect(refill).toBeUndefined();
  });

  it('names the newest entry of the log that the lane knows', async () => {
    buy('anna');
    await (await takes.next()).serve([TAKEN], { seq: 5, orders: 9 });
    buy('ben');
    const second = await takes.next();
    expect(second.batch.newest).toEqual({ seq: 5, tail: '1001', orders: 9 });
    // Nothing was taken: the number that the reply names is not used yet.
    await second.serve([{ kind: 'limit', orderIds: [] }], { seq: 6, orders: 9 });
    buy('cleo');
    expect((await takes.next()).batch.newest).toEqual({ seq: 5, tail: '1001', orders: 9 });
  });

  it('names the last ticket that the segment has answered, also if nothing was taken', async () => {
    buy('anna');
    const first = await takes.next();
    await first.serve([{ kind: 'limit', orderIds: [] }], { seq: 6 });
    buy('ben');
    const second = await takes.next();
    expect(second.batch.answeredTicket).toBe(first.batch.ticket);
    // A refused take leaves no ticket in the segment, and neither does a reply without a call.
    await second.refuse('paused');
    buy('cleo');
    const third = await takes.next();
    expect(third.batch.answeredTicket).toBe(first.batch.ticket);
    await third.serve([{ kind: 'refused', reason: 'no' }], { seq: 0 });
    buy('dora');
    expect((await takes.next()).batch.answeredTicket).toBe(first.batch.ticket);
  });

  it('holds all purchases of one turn of the event loop', async () => {
    buy('anna');
    await Promise.resolve();
    buy('ben');
    expect(takes.asks).toEqual([]);
    expect((await takes.next()).buyers).toEqual(['anna', 'ben']);
  });

  it('is the only one in flight: purchases that arrive meanwhile are the next batch', async () => {
    buy('anna');
    const first = await takes.next();
    buy('ben');
    await settledTurns();
    buy('cleo');
    await settledTurns();
    expect(takes.asks).toHaveLength(1);
    expect(lane.depth).toBe(2);
    await first.serve([TAKEN]);
    expect((await takes.next()).buyers).toEqual(['ben', 'cleo']);
    expect(lane.depth).toBe(0);
  });

  it('may have one purchase', async () => {
    for (const buyer of buyers(3)) {
      const pending = buy(buyer);
      await (await takes.next()).serve([TAKEN], { seq: 1, committed: 0 });
      expect(codesOf([pending])).toEqual(['waits']);
    }
  });

  it(`has at most ${MAX_BATCH_ORDERS} orders; the others are in the next one`, async () => {
    const all = buyers(2 * MAX_BATCH_ORDERS + 1);
    for (const buyer of all) buy(buyer);
    const sent: string[] = [];
    for (const size of [MAX_BATCH_ORDERS, MAX_BATCH_ORDERS, 1]) {
      const ask = await takes.next();
      expect(ask.orders).toHaveLength(size);
      sent.push(...ask.buyers);
      await ask.serve([TAKEN]);
    }
    expect(sent).toEqual(all);
    expect(events.onBatch).toHaveBeenLastCalledWith(1);
  });

  it('has a newer ticket than the one before, even if the clock was set back', async () => {
    const tickets: number[] = [];
    for (const buyer of buyers(4)) {
      buy(buyer);
      const ask = await takes.next();
      tickets.push(ask.batch.ticket);
      await ask.serve([TAKEN]);
      vi.setSystemTime(Date.now() - 3_600_000);
    }
    expect(tickets).toEqual([...new Set(tickets)].sort((a, b) => a - b));
  });

  it('leaves out purchases that were answered while they were queued', async () => {
    buy('anna');
    const first = await takes.next();
    const ben = buy('ben', {}, lane, shortLived);
    await elapse(100);
    const cleo = buy('cleo');
    await elapse(20);
    expect(codesOf([ben, cleo])).toEqual(['busy', 'waits']);
    await first.serve([TAKEN]);
    expect((await takes.next()).buyers).toEqual(['cleo']);
  });

  it('is not sent if all its purchases were answered while they were queued', async () => {
    buy('anna');
    const first = await takes.next();
    buy('ben');
    await elapse(LIVES_MS + 50);
    await first.serve([TAKEN]);
    expect(takes.asks).toHaveLength(1);
    const cleo = buy('cleo');
    await (await takes.next()).serve([TAKEN], { committed: 1 });
    advance(1);
    expect(codesOf([cleo])).toEqual(['committed']);
  });
});

describe('a lane', () => {
  it('has nothing to do, and refuses nobody, before its first purchase', async () => {
    expect([lane.isWaiting, lane.isShedding, lane.depth]).toEqual([false, false, 0]);
    expect(await lane.run()).toEqual([]);
  });

  it('has nothing to do after its last purchase was served', async () => {
    buy('anna');
    await (await takes.next()).serve([TAKEN]);
    expect(lane.isWaiting).toBe(false);
  });

  it('is run once at a time, however often it is told to', async () => {
    const anna = underWay.begin(aPurchase(), () => {});
    lane.push(anna);
    void lane.run();
    const ask = await takes.next();
    expect(await lane.run()).toEqual([]);
    await settledTurns();
    expect(takes.asks).toEqual([ask]);
  });

  it('forgets what a watermark rejects while no take is under way', async () => {
    advance(5, { rejected: [{ orderId: '1001', reason: 'stock' }] });
    const anna = buy('anna');
    await (await takes.next()).serve([TAKEN], { seq: 5 });
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it('does not ask a segment about losses after it was closed', async () => {
    buy('anna', { awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 5 });
    lane.settlement.close();
    expect(lane.settlement.hasUncommitted).toBe(false);
    check();
    await settledTurns();
    expect(takes.asks).toHaveLength(1);
  });
});
