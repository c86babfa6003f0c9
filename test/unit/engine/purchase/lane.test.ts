import pLimit from 'p-limit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Board } from '../../../../src/engine/board/board.ts';
import {
  NO_ENTRY,
  type Outcome,
  type Purchase,
  type Rejection,
  type SaleRecord,
  type TakeReply,
} from '../../../../src/engine/contract.ts';
import { NotExecuted } from '../../../../src/engine/errors.ts';
import { MAX_BATCH_ORDERS } from '../../../../src/engine/limits.ts';
import type { EngineEvents } from '../../../../src/engine/purchase/events.ts';
import { Lane, type LaneParts, type LaneSale } from '../../../../src/engine/purchase/lane.ts';
import type { LogHints } from '../../../../src/engine/purchase/log-hints.ts';
import type { LivePurchase } from '../../../../src/engine/purchase/purchase.ts';
import type { HandedBack } from '../../../../src/engine/purchase/settle.ts';
import { PurchasesUnderWay } from '../../../../src/engine/purchase/under-way.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { TickScheduler } from '../../../../src/lib/tick-scheduler.ts';
import { elapse, freezeTime, settledTurns, turn } from '../../../support/engine/frozen-time.ts';
import { aPurchase, codesOf } from '../../../support/engine/purchases.ts';
import { type Ask, ScriptedTakes, SHORT, TAKEN } from '../../../support/engine/scripted-takes.ts';
import { aSale } from '../../../support/sales.ts';

const SEGMENT = 2;
const SEGMENTS = 4;
const LIMIT = 3;
const CAPACITY = 1_000;
const LIVES_MS = 500;
const MAX_QUEUE_MS = LIVES_MS;
/** After a lost reply, the lane sends the batch again within this time. */
const SENT_AGAIN_MS = 50;
const ENDS_AT = Date.UTC(2027, 0, 1);

let takes: ScriptedTakes;
let board: Board;
let underWay: PurchasesUnderWay;
/** Purchases with a shorter deadline. */
let shortLived: PurchasesUnderWay;
let sale: { record: SaleRecord; slot: number; isGone: boolean; refills: LaneSale['refills'] };
let lane: Lane;
let faults: unknown[];
let nextId: number;
/** Tests replace some of them. */
let parts: { -readonly [K in keyof LaneParts]: LaneParts[K] };
let events: { -readonly [K in keyof EngineEvents]: EngineEvents[K] };
let grew: ReturnType<typeof vi.fn<LogHints['grew']>>;
/** What the lanes have handed back; after a stale segment, with the rest of the queue. */
let handedBack: HandedBack[];
/** The purchases that must be checked. */
let checking: LivePurchase[];

beforeEach(() => {
  freezeTime();
  takes = new ScriptedTakes();
  board = new Board(1);
  faults = [];
  nextId = 1001;
  open({ durable: true });
});

afterEach(() => {
  vi.useRealTimers();
  for (const [, orders] of vi.mocked(events.onUncommitted!).mock.calls) expect(orders).not.toEqual([]);
});

function open({ durable }: { durable: boolean }): void {
  const definition = aSale({ id: 'sale', segments: SEGMENTS, perBuyerLimit: LIMIT, endsAt: ENDS_AT });
  sale = {
    record: { sale: definition, state: 'open', generation: 1, epoch: 1 },
    slot: 0,
    isGone: false,
    refills: pLimit(1),
  };
  handedBack = [];
  checking = [];
  grew = vi.fn();
  events = {
    onBatch: vi.fn(),
    onRefill: vi.fn(),
    onUncommitted: vi.fn(),
    onFault: (error) => faults.push(error),
  };
  underWay = new PurchasesUnderWay(LIVES_MS, durable, events);
  shortLived = new PurchasesUnderWay(100, durable, events);
  parts = {
    ...{ takes, board, durable, events, ticks: new TickScheduler() },
    worker: 7,
    laneCapacity: CAPACITY,
    maxQueueMs: MAX_QUEUE_MS,
    nextOrderId: () => String(nextId++),
    hints: { grew } as unknown as LogHints,
  };
  lane = new Lane(parts, sale, SEGMENT);
}

/** Runs a lane as its sale does. */
async function run(at: Lane): Promise<void> {
  for (let some = await at.run(); some.length > 0; some = await at.run()) {
    for (const one of some) {
      if (one.why === 'stale') handedBack.push({ ...one, purchases: [...one.purchases, ...at.drain()] });
      else if (one.why === 'checking') checking.push(...one.purchases);
      else handedBack.push(one);
    }
  }
}

function go(at: Lane): void {
  if (at.isWaiting) void run(at);
}

type Bought = LivePurchase & { readonly told: Outcome[] };

function buy(buyerId: string, spec: Partial<Purchase> = {}, at = lane, among = underWay): Bought {
  const told: Outcome[] = [];
  const purchase = among.begin(aPurchase({ buyerId, ...spec }), (outcome) => told.push(outcome));
  at.push(purchase);
  go(at);
  return Object.assign(purchase, { told });
}

function readmit(purchase: LivePurchase): void {
  lane.readmit(purchase);
  go(lane);
}

function check(): void {
  lane.check();
  go(lane);
}

const buyers = (count: number) => Array.from({ length: count }, (_, i) => `buyer-${i}`);

function advance(seq: number, { generation = 1, rejected = [] as Rejection[] } = {}): void {
  checking.push(
    ...lane.advance({ saleId: 'sale', segment: SEGMENT, generation, seq, orders: seq, rejected }),
  );
}

/** The sale is in another generation, and the lane's worker knows: the lane is retired. */
function learnGeneration(generation: number): void {
  sale.record = { ...sale.record, generation };
}

/** A purchase whose first attempt got no reply, and its second attempt. */
async function unconfirmed(spec: Partial<Purchase> = {}) {
  const anna = buy('anna', spec);
  const first = await takes.next();
  await first.loseReply();
  await elapse(SENT_AGAIN_MS);
  const again = await takes.next();
  expect(codesOf([anna])).toEqual(['waits']);
  return { anna, first, again };
}

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
    const anna = buy('anna');
    const first = await takes.next();
    const ben = buy('ben');
    await elapse(LIVES_MS - 100);
    const cleo = buy('cleo');
    await elapse(150);
    expect(codesOf([anna, ben, cleo])).toEqual(['unknown', 'busy', 'waits']);
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
    parts.nextOrderId = () => {
      if (nextId === 1002) throw new NotExecuted('the lease has lapsed');
      return String(nextId++);
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
    for (let waited = 0; waited < LIVES_MS; waited += 100) {
      const ask = await takes.next();
      tickets.push(ask.batch.ticket);
      await elapse(100);
      await ask.refuse('superseded');
    }
    expect(tickets).toEqual([...new Set(tickets)].sort((a, b) => a - b));
    expect(codesOf([anna])).toEqual(['unknown']);
    expect(takes.asks).toHaveLength(tickets.length);
  });
});

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

describe('a segment that is short', () => {
  it('gets the short orders again, with a refill', async () => {
    buy('anna');
    buy('ben', { quantity: 2 });
    const first = await takes.next();
    await first.serve([TAKEN, SHORT]);
    const refill = await takes.next();
    expect(refill.refill).toBe(SEGMENTS);
    expect(refill.orders).toEqual([first.orders[1]]);
    expect(refill.batch.ticket).toBeGreaterThan(first.batch.ticket);
  });

  it('takes the units of the refill', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([TAKEN], { seq: 2, total: 5 });
    advance(2);
    expect(codesOf([anna])).toEqual(['committed']);
    expect(board.isSoldOut(0)).toBe(false);
  });

  it('makes the purchase sold out if the sale has no units, and closes the board', async () => {
    const pendings = [buy('anna'), buy('ben', { quantity: 2 })];
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 0, epoch: 4 });
    expect(codesOf(pendings)).toEqual(['sold_out', 'sold_out']);
    expect([board.isSoldOut(0), board.epoch(0)]).toEqual([true, 4]);
  });

  it('closes the board with the take that gets the last unit', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([TAKEN], { seq: 1, total: 0, epoch: 4 });
    expect(codesOf([anna])).toEqual(['waits']);
    expect(board.isSoldOut(0)).toBe(true);
  });

  it('does not close the board if units came back meanwhile', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    const refill = await takes.next();
    board.learn(0, 5, monotonicMs());
    await refill.serve([SHORT], { total: 0, epoch: 4 });
    expect(codesOf([anna])).toEqual(['sold_out']);
    expect(board.isSoldOut(0)).toBe(false);
  });

  it('tells the units that remain if the sale has too few', async () => {
    const anna = buy('anna', { quantity: 3 });
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 1 });
    expect(anna.told).toEqual([{ code: 'insufficient_stock', remaining: 1 }]);
    expect(board.isSoldOut(0)).toBe(false);
  });

  it('gets the order a third time if other segments had enough units for it', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 2 });
    await (await takes.next()).serve([TAKEN], { seq: 3, total: 1 });
    advance(3);
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it('gets the order a third time if other segments had just enough units for it', async () => {
    const anna = buy('anna', { quantity: 2 });
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 2 });
    expect(codesOf([anna])).toEqual(['waits']);
    expect((await takes.next()).buyers).toEqual(['anna']);
  });

  it('may refuse at the refill', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).refuse('paused');
    expect(codesOf([anna])).toEqual(['paused']);
  });

  it('makes the purchase unavailable if the refill was not executed: the first reply shows that nothing was taken', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).notExecuted();
    expect(codesOf([anna])).toEqual(['unavailable']);
  });
});

describe('refills of one sale', () => {
  let other: Lane;

  beforeEach(() => {
    other = new Lane(parts, sale, SEGMENT + 1);
  });

  /** Both lanes are short. The refill of the first is under way, and that of the second waits for it. */
  async function bothShort(spec: Partial<Purchase> = {}) {
    const [anna, ben] = [buy('anna'), buy('ben', spec, other)];
    const asks = [await takes.next(), await takes.next()];
    for (const ask of asks) await ask.serve([SHORT]);
    return { anna, ben, first: await takes.next() };
  }

  it('are made one at a time', async () => {
    const { ben, first } = await bothShort();
    expect(takes.asks).toHaveLength(3);
    expect(first.buyers).toEqual(['anna']);
    await first.serve([TAKEN], { seq: 1, total: 1 });
    const second = await takes.next();
    expect([second.buyers, second.refill]).toEqual([['ben'], SEGMENTS]);
    await second.serve([SHORT], { total: 0 });
    expect(codesOf([ben])).toEqual(['sold_out']);
  });

  it('are not made if the one before has found no units', async () => {
    const { anna, ben, first } = await bothShort();
    await first.serve([SHORT], { total: 0 });
    expect(codesOf([anna, ben])).toEqual(['sold_out', 'sold_out']);
    expect(takes.asks).toHaveLength(3);
    buy('cleo', { key: 'click' }, other);
    expect((await takes.next()).buyers).toEqual(['cleo']);
  });

  it('are made for a purchase with a key: the buyer’s record may hold its order', async () => {
    const { ben, first } = await bothShort({ key: 'click' });
    await first.serve([SHORT], { total: 0 });
    const second = await takes.next();
    await second.serve([{ kind: 'replay', orderId: '900', quantity: 1, seq: 3 }], { committed: 3 });
    expect(codesOf([ben])).toEqual(['committed']);
  });

  it('are made for an unconfirmed purchase: it may have taken the last units', async () => {
    const { ben, first } = await bothShort();
    await first.serve([TAKEN], { seq: 1, total: 1 });
    const lost = await takes.next();
    await lost.loseReply();
    board.close(0, 1, monotonicMs());
    await elapse(SENT_AGAIN_MS);
    const again = await takes.next();
    expect(again.orders).toEqual(lost.orders);
    const replay = { kind: 'replay', orderId: lost.orderIds[0]!, quantity: 1, seq: 9 } as const;
    await again.serve([replay], { committed: 9, total: 0 });
    expect(codesOf([ben])).toEqual(['committed']);
  });

  it('are made without purchases that expired while they waited', async () => {
    buy('anna');
    const early = buy('early', {}, other, shortLived);
    const ben = buy('ben', {}, other);
    for (const ask of [await takes.next(), await takes.next()]) await ask.serve([SHORT]);
    const first = await takes.next();
    await elapse(150);
    expect(codesOf([early, ben])).toEqual(['busy', 'waits']);
    await first.serve([TAKEN], { seq: 1, total: 1 });
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it.each<[string, (ask: Ask) => Promise<void>]>([
    ['is refused', (ask) => ask.notExecuted()],
    ['is lost', (ask) => ask.loseReply()],
    ['fails', (ask) => ask.fail(new Error('a bug'))],
  ])('continue after one that %s', async (_, fail) => {
    const { first } = await bothShort();
    await fail(first);
    expect((await takes.next()).buyers).toEqual(['ben']);
  });
});

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

describe('a deadline', () => {
  it.each([
    ['queued', true, 'busy'],
    ['sent', true, 'unknown'],
    ['short, and sent with a refill', true, 'unknown'],
    ['taken', true, 'accepted'],
    ['taken', false, 'unknown'],
  ])('finds the purchase %s (durable: %s) and answers %s', async (how, durable, code) => {
    open({ durable });
    let pending = buy('anna');
    const ask = await takes.next();
    if (how === 'queued') pending = buy('ben');
    if (how === 'taken') await ask.serve([TAKEN], { seq: 1 });
    if (how.startsWith('short')) await ask.serve([SHORT]);
    await elapse(LIVES_MS + 50);
    expect(codesOf([pending])).toEqual([code]);
  });

  it('answers busy while the store delays the purchase: nothing was sent', async () => {
    takes.isDelayed = true;
    const anna = buy('anna');
    const ask = await takes.next();
    await elapse(LIVES_MS + 50);
    expect(codesOf([anna])).toEqual(['busy']);
    await ask.serve([{ kind: 'unsent' }], { seq: 0 });
    expect(codesOf([anna])).toEqual(['busy']);
    expect(grew).not.toHaveBeenCalled();
  });

  it('ends the purchase: no record is read when its segment refuses it later', async () => {
    const anna = buy('anna', { key: 'click' });
    const ask = await takes.next();
    await elapse(LIVES_MS + 50);
    await ask.refuse('paused');
    expect(codesOf([anna])).toEqual(['unknown']);
    expect(handedBack).toEqual([]);
  });

  it('answers busy while the purchase waits for a refill', async () => {
    const anna = buy('anna');
    const ask = await takes.next();
    takes.isDelayed = true;
    await ask.serve([SHORT]);
    await takes.next();
    await elapse(LIVES_MS + 50);
    expect(codesOf([anna])).toEqual(['busy']);
  });

  it('answers unknown while the purchase is delayed and an earlier attempt is unconfirmed', async () => {
    const anna = buy('anna');
    const first = await takes.next();
    takes.isDelayed = true;
    await first.loseReply();
    await elapse(SENT_AGAIN_MS);
    await takes.next();
    await elapse(LIVES_MS);
    expect(codesOf([anna])).toEqual(['unknown']);
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

describe('another generation', () => {
  it('in a watermark settles nothing in this one', async () => {
    const anna = buy('anna');
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(5, { generation: 2 });
    advance(5, { generation: 0 });
    expect(codesOf([anna])).toEqual(['waits']);
  });
});

describe('a bug', () => {
  const bug = () => {
    throw new Error('a bug');
  };

  it.each<[string, () => void, () => void]>([
    ['where batches are counted', () => (events.onBatch = bug), () => delete events.onBatch],
    ['where logs are told to have grown', () => grew.mockImplementation(bug), () => grew.mockReset()],
    ['where orders are named', () => (parts.nextOrderId = bug), () => (parts.nextOrderId = () => '77')],
  ])('%s leaves no purchase without an answer', async (_, plant, repair) => {
    plant();
    const anna = buy('anna');
    await settledTurns();
    for (const ask of takes.asks) await ask.serve([TAKEN], { seq: 1 });
    advance(1);
    expect(anna.told).toHaveLength(1);
    expect(faults).toHaveLength(1);
    repair();
    const asked = takes.asks.length;
    buy('ben');
    await turn();
    await settledTurns();
    expect(takes.asks).toHaveLength(asked + 1);
  });

  it('in the board leaves no purchase without an answer', async () => {
    const close = vi.spyOn(board, 'close').mockImplementation(() => {
      throw new Error('a bug');
    });
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 0 });
    expect(anna.told).toHaveLength(1);
    expect(faults).toHaveLength(1);
    close.mockRestore();
    buy('ben');
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it('in the board, before a batch was made, does not stop the lane for ever', async () => {
    const isSoldOut = vi.spyOn(board, 'isSoldOut').mockImplementationOnce(() => {
      throw new Error('a bug');
    });
    const anna = buy('anna');
    await settledTurns();
    expect(isSoldOut).toHaveBeenCalled();
    buy('ben');
    await settledTurns();
    expect(takes.asks.flatMap((ask) => ask.buyers)).toEqual(['anna', 'ben']);
    expect(faults).toHaveLength(1);
    expect(codesOf([anna])).toEqual(['waits']);
  });
});
