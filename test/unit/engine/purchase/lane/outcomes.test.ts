/** What becomes of purchases that a segment has served: by its reply, by the buyer’s record, by a watermark. */
import { describe, expect, it } from 'vitest';
import type { Outcome, Rejection } from '../../../../../src/engine/contract.ts';
import { elapse } from '../../../../support/engine/frozen-time.ts';
import {
  advance,
  buy,
  buyers,
  checking,
  ENDS_AT,
  grew,
  handedBack,
  LIMIT,
  LIVES_MS,
  lane,
  open,
  SEGMENT,
  stageLane,
  takes,
} from '../../../../support/engine/lane-stage.ts';
import { codesOf } from '../../../../support/engine/purchases.ts';
import { type Ask, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('a purchase that the buyer’s record decides', () => {
  it.each<[string, Outcome, (ask: Ask) => Promise<void>]>([
    ['paused', { code: 'paused' }, (ask) => ask.refuse('paused')],
    ['closed', { code: 'ended', endedAt: ENDS_AT }, (ask) => ask.refuse('closed')],
    ['full', { code: 'refused', reason: 'no' }, (ask) => ask.serve([{ kind: 'refused', reason: 'no' }])],
  ])(
    'has a key, and its segment is %s: it is handed back, so that the record is read',
    async (_, refusal, answer) => {
      const anna = buy('anna', { key: 'click' });
      await answer(await takes.next());
      expect(codesOf([anna])).toEqual(['waits']);
      expect(handedBack).toEqual([{ why: 'refused', purchases: [anna], refusal }]);
    },
  );

  it('has a key, and was answered before its segment refused it: it is not handed back', async () => {
    buy('anna', { key: 'click' });
    const ask = await takes.next();
    await elapse(LIVES_MS + 50);
    await ask.refuse('paused');
    expect(handedBack).toEqual([]);
  });

  it('is at the limit, and the answer lists the buyer’s orders', async () => {
    const anna = buy('anna', { quantity: 2 });
    await (await takes.next()).serve([{ kind: 'limit', orderIds: ['900', '901'] }]);
    expect(anna.told).toEqual([{ code: 'limit_reached', limit: LIMIT, orderIds: ['900', '901'] }]);
  });

  it('has the key of an order with another quantity', async () => {
    const anna = buy('anna', { key: 'click' });
    await (await takes.next()).serve([{ kind: 'mismatch', orderId: '900', quantity: 3 }]);
    expect(anna.told).toEqual([{ code: 'idempotency_mismatch', orderId: '900', quantity: 3 }]);
  });

  it('is a repetition whose order waits for its commit: nothing must be checked, and sync gets a hint', async () => {
    const anna = buy('anna', { key: 'click' });
    const replay = { kind: 'replay', orderId: '900', quantity: 1, seq: 3 } as const;
    await (await takes.next()).serve([replay], { seq: 4, committed: 2 });
    expect([codesOf([anna]), checking]).toEqual([['waits'], []]);
    expect(grew).toHaveBeenCalledExactlyOnceWith('sale', SEGMENT, true);
    advance(3);
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it('is checked if it is a repetition and the watermark came first, with other names', async () => {
    const anna = buy('anna', { key: 'click' });
    const ask = await takes.next();
    const watermark = { saleId: 'sale', segment: SEGMENT, generation: 1, seq: 3, orders: 3, rejected: [] };
    lane.advance({ ...watermark, tails: ['77'] });
    await ask.serve([{ kind: 'replay', orderId: '900', quantity: 1, seq: 3 }], { seq: 4, committed: 2 });
    expect([codesOf([anna]), checking]).toEqual([['waits'], [anna]]);
  });

  it('gets the order of the same key, also within one batch', async () => {
    const pendings = [buy('anna', { key: 'click' }), buy('anna', { key: 'click' })];
    const ask = await takes.next();
    const orderId = ask.orderIds[0]!;
    await ask.serve([TAKEN, { kind: 'replay', orderId, quantity: 1, seq: 8 }], { seq: 8, committed: 7 });
    advance(8);
    const outcome = { code: 'committed', orderId, quantity: 1 };
    expect(pendings.map(({ told }) => told)).toEqual([[outcome], [outcome]]);
  });
});

describe('a purchase that is taken', () => {
  it('is committed when the watermark comes', async () => {
    const anna = buy('anna', { quantity: 2 });
    await (await takes.next()).serve([TAKEN], { seq: 3 });
    advance(2);
    expect(codesOf([anna])).toEqual(['waits']);
    advance(3);
    expect(anna.told).toEqual([{ code: 'committed', orderId: '1001', quantity: 2 }]);
  });

  it('is committed at once if the watermark came before the reply', async () => {
    const anna = buy('anna');
    const ask = await takes.next();
    advance(3);
    await ask.serve([TAKEN], { seq: 3, committed: 2 });
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it.each<[Rejection['reason'], Outcome]>([
    ['stock', { code: 'sold_out' }],
    ['limit', { code: 'limit_reached', limit: LIMIT, orderIds: [] }],
  ])('is never committed if it is rejected for the %s, whichever comes first', async (reason, outcome) => {
    const rejected = [
      { orderId: '1001', reason },
      { orderId: '1002', reason },
    ];
    const anna = buy('anna');
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(1, { rejected: [rejected[0]!] });
    const ben = buy('ben');
    const ask = await takes.next();
    advance(2, { rejected: [rejected[1]!] });
    await ask.serve([TAKEN], { seq: 2, committed: 1 });
    expect([anna.told, ben.told]).toEqual([[outcome], [outcome]]);
  });

  it('makes one hint a batch: the log has grown', async () => {
    for (const buyer of buyers(3)) buy(buyer);
    await (await takes.next()).serve([TAKEN]);
    expect(grew).toHaveBeenCalledExactlyOnceWith('sale', SEGMENT, true);
    buy('late');
    await (await takes.next()).serve([{ kind: 'limit', orderIds: [] }]);
    expect(grew).toHaveBeenCalledTimes(1);
  });

  it('is accepted at once if its client does not wait for the commit', async () => {
    const anna = buy('anna', { awaitCommit: false, quantity: 2 });
    await (await takes.next()).serve([TAKEN]);
    expect(anna.told).toEqual([{ code: 'accepted', orderId: '1001', quantity: 2 }]);
    expect([checking, lane.settlement.waiters.size]).toEqual([[], 0]);
    advance(1);
    expect(anna.told).toHaveLength(1);
  });

  it('waits for its commit in any case if the log does not outlive the process', async () => {
    open({ durable: false });
    const anna = buy('anna', { awaitCommit: false });
    await (await takes.next()).serve([TAKEN]);
    expect(codesOf([anna])).toEqual(['waits']);
    advance(1);
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it('is in the log even if its deadline has passed: sync gets a hint', async () => {
    const anna = buy('anna');
    const ask = await takes.next();
    await elapse(LIVES_MS + 50);
    await ask.serve([TAKEN], { seq: 1 });
    expect(codesOf([anna])).toEqual(['unknown']);
    expect([checking, lane.settlement.waiters.size]).toEqual([[], 0]);
    expect(grew).toHaveBeenCalledTimes(1);
    advance(1);
    expect(anna.told).toHaveLength(1);
  });
});

describe('a watermark that names its entries', () => {
  function name(seq: number, ...tails: string[]): void {
    const watermark = {
      saleId: 'sale',
      segment: SEGMENT,
      generation: 1,
      seq,
      orders: seq,
      rejected: [],
      tails,
    };
    checking.push(...lane.advance(watermark));
  }

  it('settles the orders of a batch by the first that was taken', async () => {
    const [none, anna, ben] = ['none', 'anna', 'ben'].map((buyerId) => buy(buyerId));
    const ask = await takes.next();
    await ask.serve([{ kind: 'limit', orderIds: [] }, TAKEN, TAKEN], { seq: 4 });
    name(4, ask.orderIds[1]!);
    expect(codesOf([none!, anna!, ben!])).toEqual(['limit_reached', 'committed', 'committed']);
    expect(checking).toEqual([]);
  });

  it('does not settle orders of an entry with another name', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([TAKEN], { seq: 4 });
    name(4, '77');
    expect(codesOf([anna])).toEqual(['waits']);
    expect(checking).toEqual([anna]);
  });
});
