/** A batch without a reply: it may have been executed, so it is sent again. */
import { describe, expect, it, vi } from 'vitest';
import type { TakeReply, TakeResult } from '../../../../../src/engine/contract.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import { elapse } from '../../../../support/engine/frozen-time.ts';
import {
  advance,
  board,
  buy,
  events,
  faults,
  grew,
  handedBack,
  LIVES_MS,
  lane,
  readmit,
  SEGMENTS,
  SENT_AGAIN_MS,
  sale,
  shortLived,
  stageLane,
  takes,
  unconfirmed,
} from '../../../../support/engine/lane-stage.ts';
import { codesOf } from '../../../../support/engine/purchases.ts';
import { aServer, SHORT, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('an unconfirmed batch', () => {
  it('is sent again with the same orders and a newer ticket, until it is answered', async () => {
    const pendings = [buy('anna'), buy('ben', { quantity: 2, key: 'click' })];
    const first = await takes.next();
    let last = first;
    for (let attempt = 0; attempt < 5; attempt++) {
      await last.loseReply();
      await elapse(SENT_AGAIN_MS);
      const next = await takes.next();
      expect(next.orders).toEqual(first.orders);
      expect(next.batch.ticket).toBeGreaterThan(last.batch.ticket);
      last = next;
    }
    await last.serve([TAKEN], { seq: 3 });
    advance(3);
    expect(codesOf(pendings)).toEqual(['committed', 'committed']);
    expect(takes.asks).toHaveLength(6);
  });

  it.each<[Exclude<TakeReply['status'], 'served'>]>([['busy'], ['paused'], ['closed']])(
    'is unknown if its segment then answers %s: the first attempt may have taken it',
    async (status) => {
      const { anna, again } = await unconfirmed();
      await again.refuse(status);
      expect(codesOf([anna])).toEqual(['unknown']);
      expect(faults).toEqual([]);
    },
  );

  it('waits for the store until its last purchase expires, not only its first', async () => {
    buy('anna', {}, lane, shortLived);
    buy('ben');
    const ask = await takes.next();
    takes.ready = false;
    await ask.loseReply();
    for (let i = 0; i < 4; i++) await elapse(SENT_AGAIN_MS);
    expect(takes.asks).toHaveLength(1);
    await takes.becomeReady();
    await elapse(SENT_AGAIN_MS);
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it('is sent again as a plain take if it was superseded: nothing says that the segment is short', async () => {
    buy('anna');
    await (await takes.next()).refuse('superseded');
    const again = await takes.next();
    expect([again.buyers, again.refill]).toEqual([['anna'], undefined]);
  });

  it('is sent again after a pause while the store is connected and does not answer', async () => {
    buy('anna');
    await (await takes.next()).loseReply();
    await elapse(5);
    expect(takes.asks).toHaveLength(1);
  });

  it('waits for the store to connect again, until its purchases expire', async () => {
    const anna = buy('anna');
    const first = await takes.next();
    takes.ready = false;
    const whenReady = vi.spyOn(takes, 'whenReady');
    await first.loseReply();
    expect(whenReady.mock.calls).toEqual([[LIVES_MS]]);
    await elapse(SENT_AGAIN_MS * 2);
    expect(takes.asks).toHaveLength(1);
    await takes.becomeReady();
    await elapse(SENT_AGAIN_MS);
    expect((await takes.next()).orders).toEqual(first.orders);
    expect(codesOf([anna])).toEqual(['waits']);
  });

  it('is unknown if the store stays away, and the lane continues', async () => {
    const anna = buy('anna');
    const first = await takes.next();
    takes.ready = false;
    await first.loseReply();
    await elapse(LIVES_MS + 50);
    expect(codesOf([anna])).toEqual(['unknown']);
    takes.ready = true;
    buy('ben');
    await elapse(SENT_AGAIN_MS);
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it('delays the next batch', async () => {
    const { again } = await unconfirmed();
    buy('ben');
    await elapse(SENT_AGAIN_MS);
    expect(takes.asks).toHaveLength(2);
    await again.serve([TAKEN]);
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it('is sent again without the purchases that were answered meanwhile', async () => {
    const early = buy('anna', {}, lane, shortLived);
    const late = buy('ben');
    const first = await takes.next();
    expect(first.buyers).toEqual(['anna', 'ben']);
    await elapse(150);
    await first.loseReply();
    await elapse(SENT_AGAIN_MS);
    const again = await takes.next();
    expect(again.orders).toEqual([first.orders[1]]);
    await again.serve([TAKEN], { seq: 2 });
    advance(2);
    expect(codesOf([early, late])).toEqual(['unknown', 'committed']);
  });

  it('is given up when its last purchase has expired, and the next ticket makes the segment refuse it', async () => {
    const { anna, again } = await unconfirmed();
    await elapse(LIVES_MS);
    expect(codesOf([anna])).toEqual(['unknown']);
    await again.loseReply();
    await elapse(SENT_AGAIN_MS);
    expect(takes.asks).toHaveLength(2);
    buy('ben');
    expect((await takes.next()).batch.ticket).toBeGreaterThan(again.batch.ticket);
  });

  it.each<[string, 'paused' | 'closed' | 'busy']>([
    ['paused', 'paused'],
    ['closed', 'closed'],
    ['at its bound', 'busy'],
  ])(
    'is unknown if the segment is %s at the next attempt: the first may have been executed',
    async (_, status) => {
      const { anna, again } = await unconfirmed();
      await again.refuse(status);
      expect(codesOf([anna])).toEqual(['unknown']);
      buy('ben');
      await (await takes.next()).notExecuted();
    },
  );

  it('leaves the lane if the segment is stale, and is still unconfirmed', async () => {
    const { anna, again } = await unconfirmed();
    await again.refuse('stale');
    expect(handedBack).toEqual([{ why: 'stale', purchases: [anna] }]);
    expect([anna.state, anna.orderId]).toEqual(['unconfirmed', '1001']);
  });

  it('may have one unconfirmed purchase among others: the others are refused with the reason', async () => {
    const { anna, again } = await unconfirmed();
    await again.refuse('stale');
    readmit(anna);
    const ben = buy('ben');
    const both = await takes.next();
    expect(both.buyers).toEqual(['anna', 'ben']);
    await both.notExecuted();
    expect(codesOf([anna, ben])).toEqual(['waits', 'unavailable']);
    await elapse(SENT_AGAIN_MS);
    const third = await takes.next();
    expect(third.orderIds).toEqual(['1001']);
    await third.refuse('paused');
    expect(codesOf([anna])).toEqual(['unknown']);
  });

  it('is sent again although the board says sold out', async () => {
    const { anna, again } = await unconfirmed();
    await again.refuse('stale');
    board.close(sale.slot, 1, monotonicMs());
    readmit(anna);
    expect((await takes.next()).buyers).toEqual(['anna']);
  });

  it('stays unconfirmed if the next attempt was not executed', async () => {
    const { anna, again, first } = await unconfirmed();
    await again.notExecuted();
    expect(codesOf([anna])).toEqual(['waits']);
    await elapse(SENT_AGAIN_MS);
    const third = await takes.next();
    expect(third.orders).toEqual(first.orders);
    await third.refuse('paused');
    expect(codesOf([anna])).toEqual(['unknown']);
  });

  it('stays unconfirmed if the next attempt was superseded', async () => {
    const { anna, again } = await unconfirmed();
    await again.refuse('superseded');
    await (await takes.next()).refuse('paused');
    expect(codesOf([anna])).toEqual(['unknown']);
  });

  it('is no longer unconfirmed once the segment has served it', async () => {
    const { anna, again } = await unconfirmed();
    await again.serve([SHORT]);
    await (await takes.next()).refuse('paused');
    expect(codesOf([anna])).toEqual(['paused']);
  });

  it('is unknown if it is refused and units came back meanwhile: they may be its own', async () => {
    const { anna, again } = await unconfirmed();
    await again.serve([{ kind: 'limit', orderIds: ['900'] }], { returned: 1 });
    expect(codesOf([anna])).toEqual(['unknown']);
  });

  it.each([
    [0, 'unknown'],
    [1, 'waits'],
  ])(
    'is refilled if units came back meanwhile; with %i units in the sale it is then %s',
    async (total, code) => {
      const { anna, again } = await unconfirmed();
      await again.serve([SHORT], { returned: 1 });
      const refill = await takes.next();
      expect(refill.refill).toBe(SEGMENTS);
      await refill.serve([SHORT], { returned: 1, total });
      expect(codesOf([anna])).toEqual([code]);
    },
  );

  it('is unknown if it is refused and the server was started again: it may have lost the order', async () => {
    const anna = buy('anna');
    await (await takes.next()).loseReply();
    takes.server = aServer();
    await elapse(SENT_AGAIN_MS);
    await (await takes.next()).serve([{ kind: 'limit', orderIds: [] }]);
    const ben = buy('ben');
    await (await takes.next()).serve([{ kind: 'limit', orderIds: [] }]);
    expect(codesOf([anna, ben])).toEqual(['unknown', 'limit_reached']);
  });

  it('is refused as any other if no units came back since the last reply before it', async () => {
    const cleo = buy('cleo');
    await (await takes.next()).serve([{ kind: 'limit', orderIds: [] }], { returned: 7 });
    const { anna, again } = await unconfirmed();
    await again.serve([{ kind: 'limit', orderIds: [] }], { returned: 7 });
    expect(codesOf([cleo, anna])).toEqual(['limit_reached', 'limit_reached']);
  });

  it('is refused as any other if the batch before it was not sent, and so told nothing', async () => {
    const limit: TakeResult = { kind: 'limit', orderIds: [] };
    const buyers = [buy('cleo')];
    await (await takes.next()).serve([limit], { returned: 7 });
    buyers.push(buy('dora'));
    // Under a lock: the shop has refused all orders, so the segment was not asked.
    await (await takes.next()).serve([{ kind: 'refused', reason: 'risk' }], { seq: 0, returned: 0 });
    const { anna, again } = await unconfirmed();
    await again.serve([limit], { returned: 7 });
    expect(codesOf([...buyers, anna])).toEqual(['limit_reached', 'refused', 'limit_reached']);
  });

  it('waits for its commit if it is taken again: Postgres knows whether the order was there before', async () => {
    const { anna, again } = await unconfirmed();
    await again.serve([TAKEN], { seq: 3, returned: 1 });
    expect(codesOf([anna])).toEqual(['waits']);
    advance(3);
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it('is unknown if it is taken again, units came back, and its client does not wait for the commit', async () => {
    const { anna, again } = await unconfirmed({ awaitCommit: false });
    await again.serve([TAKEN], { seq: 3, returned: 1 });
    expect(codesOf([anna])).toEqual(['unknown']);
    expect(grew).toHaveBeenCalled();
  });

  it('is refused if it was not sent at all: the shop has refused it under the lock', async () => {
    takes.isDelayed = true;
    const [fraud, ben] = [buy('fraud'), buy('ben')];
    const first = await takes.next();
    first.send(takes.server, ['ben']);
    await first.loseReply();
    expect(codesOf([fraud, ben])).toEqual(['unavailable', 'waits']);
    await elapse(SENT_AGAIN_MS);
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it('is committed if the first attempt was executed and the cursor has passed it', async () => {
    const { anna, first, again } = await unconfirmed({ quantity: 2 });
    const orderId = first.orderIds[0]!;
    await again.serve([{ kind: 'replay', orderId, quantity: 2, seq: 5 }], { seq: 6, committed: 5 });
    expect(anna.told).toEqual([{ code: 'committed', orderId, quantity: 2 }]);
  });

  it('waits for the log entry of the first attempt if that was executed', async () => {
    const { anna, first, again } = await unconfirmed();
    const orderId = first.orderIds[0]!;
    await again.serve([{ kind: 'replay', orderId, quantity: 1, seq: 5 }], { seq: 6, committed: 4 });
    advance(4);
    expect(codesOf([anna])).toEqual(['waits']);
    advance(5);
    expect(anna.told).toEqual([{ code: 'committed', orderId, quantity: 1 }]);
  });

  it('is accepted if the first attempt was executed and its client does not wait for the commit', async () => {
    const { anna, first, again } = await unconfirmed({ awaitCommit: false });
    const orderId = first.orderIds[0]!;
    await again.serve([{ kind: 'replay', orderId, quantity: 1, seq: 5 }]);
    expect(anna.told).toEqual([{ code: 'accepted', orderId, quantity: 1 }]);
  });

  it('is refilled for the orders that the first attempt did not take', async () => {
    const pendings = ['anna', 'ben', 'cleo'].map((buyer) => buy(buyer, { awaitCommit: false }));
    const first = await takes.next();
    await first.loseReply();
    await elapse(SENT_AGAIN_MS);
    const replay = { kind: 'replay', orderId: first.orderIds[0]!, quantity: 1, seq: 1 } as const;
    await (await takes.next()).serve([replay, SHORT, { kind: 'limit', orderIds: ['900'] }]);
    const refill = await takes.next();
    expect(events.onRefill).toHaveBeenCalledOnce();
    expect(refill.orders).toEqual([first.orders[1]]);
    await refill.serve([SHORT], { total: 0 });
    expect(codesOf(pendings)).toEqual(['accepted', 'sold_out', 'limit_reached']);
  });

  it('is sent again with a refill if it was sent with one', async () => {
    const anna = buy('anna');
    const first = await takes.next();
    await first.serve([SHORT]);
    const refill = await takes.next();
    await refill.loseReply();
    await elapse(SENT_AGAIN_MS);
    const again = await takes.next();
    expect(again.refill).toBe(SEGMENTS);
    expect(again.orders).toEqual(first.orders);
    expect(again.batch.ticket).toBeGreaterThan(refill.batch.ticket);
    await again.serve([TAKEN], { seq: 9, total: 3 });
    advance(9);
    expect(codesOf([anna])).toEqual(['committed']);
  });
});
