/** Which new purchases a lane takes in, and how it refuses the others. */
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../../../src/engine/contract.ts';
import { NotExecuted } from '../../../../../src/engine/errors.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import type { TickScheduler } from '../../../../../src/lib/tick-scheduler.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import {
  board,
  buy,
  buyers,
  CAPACITY,
  faults,
  lane,
  parts,
  stageLane,
  takes,
  underWay,
} from '../../../../support/engine/lane-stage.ts';
import { aPurchase, codesOf } from '../../../../support/engine/purchases.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('a new purchase', () => {
  it('is busy if the lane is full, until a batch has left the queue', async () => {
    buy('anna');
    const first = await takes.next();
    const queued = buyers(CAPACITY).map((buyer) => buy(buyer));
    const refused = buy('late');
    expect(codesOf([refused, queued[0]!, queued.at(-1)!])).toEqual(['busy', 'waits', 'waits']);
    await first.serve([TAKEN]);
    await takes.next();
    expect(codesOf([buy('later')])).toEqual(['waits']);
  });

  it('is busy if the first purchase in the queue has waited too long, until that one has left', async () => {
    parts.maxQueueMs = 200;
    buy('anna');
    const first = await takes.next();
    const ben = buy('ben');
    await elapse(200);
    const cleo = buy('cleo');
    expect(lane.isShedding).toBe(false);
    await elapse(1);
    expect(codesOf([ben, cleo, buy('dan')])).toEqual(['waits', 'waits', 'busy']);
    expect(lane.isShedding).toBe(true);
    await first.serve([TAKEN]);
    expect((await takes.next()).buyers).toEqual(['ben', 'cleo']);
    expect(lane.isShedding).toBe(false);
    expect(codesOf([buy('eve')])).toEqual(['waits']);
  });

  it('is refused as in a full lane while a batch is handed back and the queue is still full', async () => {
    parts.laneCapacity = 1;
    const push = (buyerId: string) => {
      const told: Outcome[] = [];
      lane.push(underWay.begin(aPurchase({ buyerId }), (outcome) => told.push(outcome)));
      return { told };
    };
    push('anna');
    const running = lane.run();
    const ask = await takes.next();
    const others = [push('ben'), push('cleo')];
    expect(codesOf(others)).toEqual(['waits', 'busy']);
    await ask.refuse('outdated');
    expect(await running).toMatchObject([{ why: 'outdated' }]);
    expect(lane.isShedding).toBe(true);
  });

  it('is not refused as in a full lane after the queue was handed over', async () => {
    parts.laneCapacity = 1;
    buy('anna');
    await takes.next();
    buy('ben');
    buy('cleo');
    expect(lane.isShedding).toBe(true);
    lane.drain();
    expect(lane.isShedding).toBe(false);
  });

  it('is not refused as in a full lane after the lane has failed', async () => {
    parts.laneCapacity = 1;
    parts.ticks = {
      next: () => new Promise((_, reject) => setImmediate(() => reject(new Error('a bug')))),
    } as TickScheduler;
    buy('anna');
    buy('ben');
    expect(lane.isShedding).toBe(true);
    await settledTurns();
    expect(faults).toHaveLength(1);
    expect(lane.isShedding).toBe(false);
  });

  it('is unavailable at once if the store is away', async () => {
    takes.ready = false;
    expect(codesOf([buy('anna')])).toEqual(['unavailable']);
    await settledTurns();
    expect(takes.asks).toEqual([]);
    takes.ready = true;
    buy('ben');
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it('is unavailable while the worker may not name orders', async () => {
    const lapsed = new NotExecuted('the lease has lapsed');
    parts.nextOrderId = () => {
      throw lapsed;
    };
    const pendings = [buy('anna'), buy('ben')];
    await settledTurns();
    expect(codesOf(pendings)).toEqual(['unavailable', 'unavailable']);
    expect(faults).toContain(lapsed);
    expect(takes.asks).toEqual([]);
    parts.nextOrderId = () => '77';
    buy('cleo');
    expect((await takes.next()).orderIds).toEqual(['77']);
  });

  it('is unavailable if the lease ends before the order is named', async () => {
    let named = 0;
    parts.nextOrderId = () => {
      if (named === 1) throw new NotExecuted('the lease has lapsed');
      return String(++named);
    };
    const pendings = [buy('anna'), buy('ben')];
    expect((await takes.next()).buyers).toEqual(['anna']);
    expect(codesOf(pendings)).toEqual(['waits', 'unavailable']);
  });

  it('is sold out if the board closes while it is queued, unless its key may name an earlier order', async () => {
    const first = buy('anna');
    const ask = await takes.next();
    const [plain, keyed] = [buy('ben'), buy('cleo', { key: 'click' })];
    board.close(0, 1, monotonicMs());
    await ask.serve([TAKEN]);
    expect((await takes.next()).buyers).toEqual(['cleo']);
    expect(codesOf([first, plain, keyed])).toEqual(['waits', 'sold_out', 'waits']);
  });
});
