/** A sale that is being rebuilt, and its next generation. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Directory } from '../../../../../src/engine/board/directory.ts';
import type { Outcome, Purchase } from '../../../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../../../src/engine/errors.ts';
import { PARKED_MAX_MS } from '../../../../../src/engine/purchase/parking.ts';
import { homeSegment } from '../../../../../src/engine/sale/home-segment.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import {
  advance,
  anOrder,
  answers,
  type Bought,
  board,
  buy,
  codes,
  directory,
  engine,
  events,
  faults,
  LIVES_MS,
  learn,
  listener,
  neighbours,
  recalls,
  remember,
  SEGMENTS,
  SLOT,
  STARTS_AT,
  stageEngine,
  start,
  takes,
  uncommitted,
  viewOf,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageEngine();

describe('a rebuilt sale', () => {
  beforeEach(() => learn());

  it('gets the purchase again in the generation that the directory finds', async () => {
    const anna = buy();
    answers.view = viewOf({}, 'open', 2);
    await (await takes.next()).refuse('stale');
    expect(directory.refresh).toHaveBeenCalledExactlyOnceWith('sale', 1);
    const again = await takes.next();
    expect(again.batch.generation).toBe(2);
    await again.serve([TAKEN], { seq: 1 });
    advance(1, { generation: 2 });
    expect(codes(anna)).toEqual(['committed']);
  });

  it.each([
    ['committed if the record of the new one holds their order', '1001', 'committed'],
    ['told that nobody knows if it does not: it may have been saved, and have ended since', '900', 'unknown'],
  ])('makes purchases that wait for a commit of the old generation %s', async (_, orderId, code) => {
    const anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    answers.recall = async () => ({
      committed: 0,
      holdings: [{ buyerId: 'anna', orders: [anOrder({ orderId, seq: 0 })] }],
    });
    learn({}, 'open', 2);
    await settledTurns();
    expect(codes(anna)).toEqual([code]);
  });

  it('makes purchases that wait for a commit of the old generation unknown if the record can’t be read', async () => {
    const anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    answers.recall = () => Promise.reject(new StaleGeneration('sale', 2));
    learn({}, 'open', 2);
    await settledTurns();
    advance(5, { generation: 1 });
    advance(5, { generation: 2 });
    expect(codes(anna)).toEqual(['waits']);
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['unknown']);
  });

  it('does not shed before its new lanes have refused anybody', () => {
    learn({}, 'open', 2);
    expect(engine.isShedding('sale')).toBe(false);
  });

  it('makes Postgres tell about an order that the new generation’s record lacks: that is no loss yet', async () => {
    const anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 5 });
    learn({}, 'open', 2);
    await settledTurns();
    expect(codes(anna)).toEqual(['unknown']);
    expect([new Set(uncommitted), faults]).toEqual([new Set(['1001']), []]);
  });

  it('is not replaced by an older view that arrives late', async () => {
    learn({}, 'open', 2);
    listener.changed(viewOf({}, 'paused', 1));
    buy();
    expect((await takes.next()).batch.generation).toBe(2);
  });
});

describe('a sale that is being rebuilt', () => {
  /** Segments of the next generation, in which about every second buyer has another home segment. */
  const MORE_SEGMENTS = 64;
  const homeOf = (buyerId: string) => homeSegment(buyerId, MORE_SEGMENTS);

  beforeEach(() => learn());

  /** A purchase that a frozen segment has refused. */
  async function parkedPurchase(spec: Partial<Purchase> = {}): Promise<Bought> {
    const bought = buy(spec);
    await (await takes.next()).refuse('stale');
    expect(codes(bought)).toEqual(['waits']);
    return bought;
  }

  it('parks purchases until the next generation, and then sends the same orders to their new home segments', async () => {
    const [first, near, far] = neighbours();
    const bought = [buy({ buyerId: first }), buy({ buyerId: near }), buy({ buyerId: far })];
    const asked = [await takes.next(), await takes.next()];
    for (const ask of asked) await ask.refuse('stale');
    expect(takes.asks).toHaveLength(2);
    learn({ segments: MORE_SEGMENTS }, 'open', 2);
    await settledTurns();
    const again = takes.asks.slice(2);
    expect(again.map(({ buyers, batch }) => [buyers, batch.segment, batch.generation])).toEqual(
      [first, near, far].map((buyerId) => [[buyerId], homeOf(buyerId), 2]),
    );
    expect(again.flatMap((ask) => ask.orderIds)).toEqual(asked.flatMap((ask) => ask.orderIds));
    for (const ask of again) await ask.serve([TAKEN], { seq: 1 });
    for (const buyerId of [first, near, far]) {
      const mark = {
        saleId: 'sale',
        segment: homeOf(buyerId),
        generation: 2,
        seq: 1,
        orders: 1,
        rejected: [],
      };
      events[0]!.watermarks!([mark]);
    }
    expect(codes(...bought)).toEqual(['committed', 'committed', 'committed']);
  });

  it('is read from the directory once, however many purchases are parked', async () => {
    await parkedPurchase({ buyerId: 'anna' });
    for (let i = 0; i < 20; i++) buy({ buyerId: `late-${i}` });
    await settledTurns();
    expect(directory.refresh).toHaveBeenCalledExactlyOnceWith('sale', 1);
    expect(takes.asks).toHaveLength(1);
    expect([...engine.laneDepths()]).toEqual([{ saleId: 'sale', queued: 21, waiting: 0 }]);
  });

  it.each<[string, Directory['refresh']]>([
    ['finds no sale at all', async () => undefined],
    ['rejects', async () => Promise.reject(new Error('away'))],
    [
      'throws',
      () => {
        throw new Error('away');
      },
    ],
  ])(
    'and of which the directory %s is unavailable at the deadline: nothing was taken',
    async (_, refresh) => {
      directory.refresh.mockImplementation(refresh);
      const bought = [await parkedPurchase(), buy({ buyerId: 'late' })];
      await elapse(LIVES_MS + 50);
      expect(codes(...bought)).toEqual(['unavailable', 'unavailable']);
      expect(faults).toEqual([]);
    },
  );

  it('makes an unconfirmed purchase unknown at its deadline', async () => {
    const anna = buy();
    await (await takes.next()).loseReply();
    await elapse(50);
    await (await takes.next()).refuse('stale');
    await elapse(LIVES_MS);
    expect(codes(anna)).toEqual(['unknown']);
  });

  it('sends an unconfirmed purchase to its new home segment, which tells whether the first attempt was taken', async () => {
    const anna = buy();
    const first = await takes.next();
    await first.loseReply();
    // It may have taken the last unit.
    board.close(SLOT, 1, monotonicMs());
    learn({ segments: MORE_SEGMENTS }, 'open', 2);
    await elapse(50);
    const again = await takes.next();
    expect([again.batch.segment, again.orders]).toEqual([homeOf('anna'), first.orders]);
    const orderId = first.orderIds[0]!;
    await again.serve([{ kind: 'replay', orderId, quantity: 1, seq: 0 }], { seq: 1 });
    expect(anna.told).toEqual([{ code: 'committed', orderId, quantity: 1 }]);
  });

  it('reads no record for a parked purchase that was answered at its deadline', async () => {
    const anna = await parkedPurchase({ key: 'click' });
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['unavailable']);
    learn({}, 'paused', 2);
    await settledTurns();
    expect(recalls).toEqual([]);
  });

  it('parks nothing if the next generation is known before the segment’s refusal', async () => {
    const [first, near] = neighbours();
    buy({ buyerId: first });
    const ask = await takes.next();
    buy({ buyerId: near });
    learn({ segments: MORE_SEGMENTS }, 'open', 2);
    await settledTurns();
    expect((await takes.next()).buyers).toEqual([near]);
    await ask.refuse('stale');
    expect((await takes.next()).buyers).toEqual([first]);
    expect(directory.refresh).not.toHaveBeenCalled();
  });

  it('parks a repeated purchase if its record is stale, and answers it from the next generation’s record', async () => {
    learn({}, 'paused');
    answers.recall = async () => Promise.reject(new StaleGeneration('sale', 1));
    const anna = buy({ key: 'click' });
    await settledTurns();
    expect(codes(anna)).toEqual(['waits']);
    remember(0, anOrder({ seq: 0 }));
    learn({}, 'paused', 2);
    await settledTurns();
    expect(anna.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
  });

  it.each<[string, () => void, Outcome['code']]>([
    ['paused', () => learn({}, 'paused', 2), 'paused'],
    ['over', () => learn({ endsAt: STARTS_AT + 1 }, 'open', 2), 'ended'],
  ])('refuses parked purchases if it is %s when it is rebuilt', async (_, built, code) => {
    const anna = await parkedPurchase();
    built();
    expect(codes(anna)).toEqual([code]);
  });

  it('gets its purchases again after a while if all messages about it were lost', async () => {
    await start({ durable: true }, { requestDeadlineMs: 3 * PARKED_MAX_MS });
    learn();
    const anna = await parkedPurchase();
    await elapse(PARKED_MAX_MS);
    const again = await takes.next();
    await again.refuse('stale');
    expect(directory.refresh).toHaveBeenCalledTimes(2);
    await elapse(PARKED_MAX_MS);
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(1);
    expect(codes(anna)).toEqual(['committed']);
  });

  it('does not shed: a new purchase may be let in', async () => {
    await start({ durable: true }, { laneCapacity: 1 });
    learn({ segments: 1 });
    buy();
    const first = await takes.next();
    buy();
    buy();
    expect(engine.isShedding('sale')).toBe(true);
    await first.refuse('stale');
    expect(engine.isShedding('sale')).toBe(false);
  });

  it('parks as many purchases as its lanes may hold; more are busy', async () => {
    await start({ durable: true }, { laneCapacity: 2 });
    learn();
    await parkedPurchase();
    const room = 2 * SEGMENTS - 1;
    const late = Array.from({ length: room + 1 }, (_, i) => buy({ buyerId: `late-${i}` }));
    expect(codes(...late)).toEqual([...Array(room).fill('waits'), 'busy']);
    // Fewer lanes must take them all: they were let in before.
    learn({ segments: 1 }, 'open', 2);
    expect((await takes.next()).orders).toHaveLength(room + 1);
  });

  it('is unavailable at once while the store is away', async () => {
    await parkedPurchase();
    takes.ready = false;
    expect(codes(buy({ buyerId: 'late' }))).toEqual(['unavailable']);
  });

  it('keeps no timer after its last purchase was answered and the worker ended', async () => {
    await parkedPurchase();
    const closing = engine.close();
    await elapse(LIVES_MS + 50);
    await closing;
    expect(vi.getTimerCount()).toBe(0);
  });
});
