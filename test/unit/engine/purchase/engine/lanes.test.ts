/** The lanes of a sale: which purchase enters which, what they tell sync, and when they ask for lost writes. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { NotExecuted } from '../../../../../src/engine/errors.ts';
import { homeSegment } from '../../../../../src/engine/sale/home-segment.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import {
  advance,
  board,
  buy,
  codes,
  engine,
  events,
  faults,
  LIVES_MS,
  learn,
  listener,
  neighbours,
  SEGMENTS,
  SLOT,
  stageEngine,
  start,
  takes,
  viewOf,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageEngine();

describe('lanes', () => {
  beforeEach(() => learn());

  it('are one per home segment, and send in the same turn', async () => {
    const [first, near, far] = neighbours();
    for (const buyerId of [first, near, far]) buy({ buyerId });
    const asks = [await takes.next(), await takes.next()];
    expect(asks.map((ask) => ask.buyers)).toEqual([[first, near], [far]]);
    expect(asks.map((ask) => ask.batch.segment)).toEqual([first, far].map((b) => homeSegment(b, SEGMENTS)));
    expect(asks.map((ask) => ask.batch.lane)).toEqual([7, 7]);
  });

  it('do not wait for each other', async () => {
    const [first, near, far] = neighbours();
    buy({ buyerId: first });
    await takes.next();
    buy({ buyerId: near });
    buy({ buyerId: far });
    expect((await takes.next()).buyers).toEqual([far]);
  });

  it('get the watermarks of their own segment, generation and sale', async () => {
    const [first, , far] = neighbours();
    const bought = [buy({ buyerId: first }), buy({ buyerId: far })];
    for (let i = 0; i < 2; i++) await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(1, { buyerId: far });
    expect(codes(...bought)).toEqual(['waits', 'committed']);
    advance(1, { buyerId: first, generation: 2 });
    events[0]!.watermarks!([
      {
        saleId: 'another',
        segment: homeSegment(first, SEGMENTS),
        generation: 1,
        seq: 1,
        orders: 1,
        rejected: [],
      },
    ]);
    expect(codes(...bought)).toEqual(['waits', 'committed']);
    advance(1, { buyerId: first });
    expect(codes(...bought)).toEqual(['committed', 'committed']);
  });

  it('report how many purchases they hold', async () => {
    const [first, near] = neighbours();
    buy({ buyerId: first });
    const ask = await takes.next();
    buy({ buyerId: near });
    expect([...engine.laneDepths()]).toEqual([{ saleId: 'sale', queued: 1, waiting: 0 }]);
    await ask.serve([TAKEN]);
    expect([...engine.laneDepths()]).toEqual([{ saleId: 'sale', queued: 0, waiting: 1 }]);
  });

  it('refuse new purchases while the first one has waited for a quarter of the time to answer', async () => {
    const [first, near] = neighbours();
    buy({ buyerId: first });
    await takes.next();
    const waits = buy({ buyerId: first });
    await elapse(LIVES_MS / 4);
    const last = buy({ buyerId: near });
    await elapse(1);
    expect(codes(waits, last, buy({ buyerId: near }))).toEqual(['waits', 'waits', 'busy']);
  });

  it('sell nothing while the worker’s number is not its own', async () => {
    const lapsed = new NotExecuted('the lease has lapsed');
    await start(
      { durable: true },
      {
        nextOrderId: () => {
          throw lapsed;
        },
      },
    );
    learn();
    const anna = buy();
    await settledTurns();
    expect(codes(anna)).toEqual(['unavailable']);
    expect(faults).toEqual([lapsed]);
  });
});

describe('a sale that sheds', () => {
  it('does so only while every lane refuses new purchases, and it is not known to be sold out', async () => {
    await start({ durable: true }, { laneCapacity: 1 });
    learn({ segments: 2 });
    const [here, there] = [0, 1].map((segment) => {
      const ids = Array.from({ length: 50 }, (_, i) => `buyer-${i}`);
      return ids.filter((id) => homeSegment(id, 2) === segment);
    }) as [string[], string[]];
    for (const [full, home] of [here, there].entries()) {
      expect(engine.isShedding('sale')).toBe(false);
      buy({ buyerId: home[0]! });
      await takes.next();
      expect(codes(buy({ buyerId: home[1]! }), buy({ buyerId: home[2]! }))).toEqual(['waits', 'busy']);
      expect(engine.isShedding('sale')).toBe(full === 1);
    }
    expect(engine.isShedding('another')).toBe(false);
    board.close(SLOT, 1, monotonicMs());
    expect(engine.isShedding('sale')).toBe(false);
  });
});

describe('hints', () => {
  beforeEach(() => learn());

  it('are one per sale and turn, with all segments that have grown', async () => {
    const other = { ...viewOf({ id: 'other' }), slot: -1 };
    listener.changed(other);
    const [first, , far] = neighbours();
    for (const saleId of ['sale', 'other']) for (const buyerId of [first, far]) buy({ saleId, buyerId });
    await settledTurns();
    await Promise.all(takes.asks.map((ask) => ask.serve([TAKEN])));
    const segments = [first, far].map((buyerId) => homeSegment(buyerId, SEGMENTS));
    expect(takes.hints).toEqual([
      { saleId: 'sale', segments, awaited: true },
      { saleId: 'other', segments, awaited: true },
    ]);
    buy({ buyerId: far });
    await settledTurns();
    await takes.asks.at(-1)!.serve([TAKEN]);
    expect(takes.hints[2]).toEqual({
      saleId: 'sale',
      segments: [homeSegment(far, SEGMENTS)],
      awaited: true,
    });
  });

  it('say whether at least one purchase waits for its commit', async () => {
    const [first, , far] = neighbours();
    for (const buyerId of [first, far]) buy({ buyerId, awaitCommit: false });
    await settledTurns();
    await Promise.all(takes.asks.map((ask) => ask.serve([TAKEN])));
    expect(takes.hints).toMatchObject([{ awaited: false }]);
    for (const buyerId of [first, far]) buy({ buyerId, awaitCommit: buyerId === far });
    await settledTurns();
    await Promise.all(takes.asks.slice(2).map((ask) => ask.serve([TAKEN], { seq: 2 })));
    expect(takes.hints[1]).toMatchObject({ awaited: true });
  });

  it('are not sent if nothing was taken', async () => {
    buy();
    await (await takes.next()).serve([{ kind: 'limit', orderIds: [] }]);
    expect(takes.hints).toEqual([]);
  });

  it('continue after one that failed', async () => {
    vi.spyOn(takes, 'hint').mockImplementationOnce(() => {
      throw new Error('a bug');
    });
    for (let seq = 1; seq <= 2; seq++) {
      buy({ buyerId: `buyer-${seq}` });
      await (await takes.next()).serve([TAKEN], { seq });
    }
    expect(takes.hints).toHaveLength(1);
    expect(faults).toHaveLength(1);
  });
});

describe('a new connection to the backend', () => {
  it('opens sold-out sales again, because the backend may have their units back', async () => {
    learn();
    board.close(SLOT, 1, monotonicMs());
    expect(codes(buy())).toEqual(['sold_out']);
    for (const { reconnected } of events) reconnected?.();
    const bought = buy({ awaitCommit: false });
    await (await takes.next()).serve([TAKEN]);
    expect(codes(bought)).toEqual(['accepted']);
  });

  it('makes the lanes of every sale ask for lost writes, also where no purchase waits', async () => {
    learn();
    const [anna, , cleo] = neighbours();
    const bought = [buy({ buyerId: anna, awaitCommit: false }), buy({ buyerId: cleo, awaitCommit: false })];
    for (let i = 0; i < bought.length; i++) await (await takes.next()).serve([TAKEN], { seq: 4 });
    expect(codes(...bought)).toEqual(['accepted', 'accepted']);

    for (const { reconnected } of events) reconnected?.();
    const checks = [await takes.next(), await takes.next()];
    expect(checks.map(({ orders }) => orders)).toEqual([[], []]);
    expect(new Set(checks.map(({ batch }) => batch.segment))).toEqual(
      new Set([anna, cleo].map((buyerId) => homeSegment(buyerId, SEGMENTS))),
    );
    for (const check of checks) expect(check.batch.newest.seq).toBe(4);
    await checks[0]!.refuse('stale');
    await checks[1]!.serve([], { seq: 4 });
    expect(takes.asks).toHaveLength(4);
    expect(faults).toEqual([]);
  });

  it('makes them ask again if the backend did not answer, until the worker has ended', async () => {
    learn();
    const bought = buy({ awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 4 });
    for (const { reconnected } of events) reconnected?.();
    await (await takes.next()).notExecuted();
    await elapse(900);
    expect(takes.asks).toHaveLength(2);
    // Purchases that arrive meanwhile do not delay it.
    buy({ buyerId: neighbours()[2] });
    await (await takes.next()).notExecuted();
    await elapse(100);
    const again = await takes.next();
    expect([again.orders, again.batch.newest.seq]).toEqual([[], 4]);
    await again.loseReply();
    await engine.close();
    await elapse(5_000);
    expect(takes.asks).toHaveLength(4);
    expect([codes(bought), faults]).toEqual([['accepted'], []]);
  });
});
