/** The checker of `npm run chaos -- --queue` finds what it is there to find. */
import { describe, expect, test } from 'vitest';
import { FREE_BOUND_MS, judgeQueue, OFFER_SLACK_MS, PAUSE_SLACK_MS } from '../../chaos/queue/checker.ts';
import { HOPELESS_SLACK_MS } from '../../chaos/queue/hopeless.ts';
import { type Memory, newMemory, type ToldState } from '../../chaos/queue/memory.ts';
import type { Movement, OrderRow, PlaceRow } from '../../chaos/queue/truth.ts';
import type { JudgedQueue } from '../../chaos/queue/waits.ts';

const CLOSED_MS = 60_000;
const QUEUE: JudgedQueue = { stock: 1, presenceMs: 20_000, faults: [], closedMs: CLOSED_MS };

/**
 * Anna has the first place and asks all the time; the sale is closed. Without a unit that could come, she is told so.
 * @param hoped until when she is told `waiting`
 */
function waiting(buyerId = 'anna', number = 1, hoped = CLOSED_MS): Memory {
  const memory = newMemory(buyerId);
  for (let ms = 1_000; ms <= CLOSED_MS; ms += 2_000) memory.heardAtMs.push(ms);
  told(memory, number, 'waiting');
  if (hoped < CLOSED_MS) told(memory, number, 'hopeless', hoped);
  return told(memory, number, 'closed', CLOSED_MS);
}

function told(memory: Memory, number: number, state: ToldState, askedAtMs = 1_000, rank?: number): Memory {
  memory.told.push({ askedAtMs, number, state, rank });
  return memory;
}

/** Has accepted the offer of its place, which was open until 20 s. */
function bought(buyerId: string, number: number, orderId = `order-${number}`): Memory {
  const memory = newMemory(buyerId);
  memory.heardAtMs.push(1_000, 10_000);
  memory.offers.set(orderId, { number, orderId, token: 'token', untilMs: 20_000 });
  memory.acceptances.push({ orderId, answeredAtMs: 12_000, outcome: 'accepted' });
  return told(told(memory, number, 'offered'), number, 'bought');
}

const place = (more: Partial<PlaceRow> = {}): PlaceRow => ({
  ...{
    number: 1,
    buyerId: 'anna',
    state: 'waiting',
    reason: undefined,
    givenAtMs: 1_000,
    endedAtMs: undefined,
  },
  rank: more.number ?? 1,
  ...more,
});

/** The place that Ben has accepted the offer of. */
const bens = (more: Partial<PlaceRow> = {}) =>
  place({ number: 2, buyerId: 'ben', state: 'bought', endedAtMs: 12_000, ...more });

const order = (more: Partial<OrderRow> = {}): OrderRow => ({
  ...{ orderId: 'order-2', number: 2, buyerId: 'ben', quantity: 1, isLive: true, isRejected: false },
  ...{ committedAtMs: 1_000, acceptedAtMs: 12_000, endedAtMs: undefined },
  ...more,
});

type More = Partial<JudgedQueue> & { readonly movements?: Movement[] };

/** The counts of what was found, without those that are no faults. */
function found(people: Memory[], places: PlaceRow[], orders: OrderRow[], more: More = {}) {
  const { movements = [], ...queue } = more;
  const truth = { places, orders, movements, reportedLost: 0 };
  const verdict: Partial<Record<string, number>> = {
    ...judgeQueue(people, truth, { ...QUEUE, ...queue }),
    ...{ sold: 0, unsold: 0, longestFreeMs: 0, longestFreeInFaultMs: 0, longestAnyFreeMs: 0 },
  };
  return Object.fromEntries(Object.entries(verdict).filter(([, count]) => count! > 0));
}

const BEN = () => bought('ben', 2);
/** Ben was first, and Anna waits behind him. */
const CAL = () => waiting('cal', 3, 13_000);
const CALS = place({ number: 3, buyerId: 'cal' });

describe('nothing is found', () => {
  test('one has bought, another waits behind until the sale is closed', () =>
    expect(found([BEN(), CAL()], [bens(), CALS], [order()])).toEqual({}));

  test('a cancelled order, whose unit went on at once', () => {
    const ben = BEN();
    ben.cancelled.add('order-2');
    const orders = [
      order({ isLive: false, endedAtMs: 15_000 }),
      order({ orderId: 'order-3', number: 3, buyerId: 'cal', committedAtMs: 15_000 }),
    ];
    const cals = place({ number: 3, buyerId: 'cal', state: 'bought', endedAtMs: 16_000 });
    expect(found([ben, bought('cal', 3)], [bens(), cals], orders)).toEqual({});
  });

  test('a later place first in the same round', () => {
    const orders = [
      order({ orderId: 'order-1', number: 1, buyerId: 'anna', committedAtMs: 10_000 + OFFER_SLACK_MS }),
      order({ committedAtMs: 10_000 }),
    ];
    const annas = place({ state: 'bought', endedAtMs: 15_000 });
    const anna = bought('anna', 1);
    for (let ms = 2_000; ms <= 15_000; ms += 500) anna.heardAtMs.push(ms);
    expect(found([anna, BEN()], [annas, bens()], orders, { stock: 2 })).toEqual({});
  });

  test('one who was not heard of is overtaken, and leaves as absent', () => {
    const anna = told(told(newMemory('anna'), 1, 'waiting'), 1, 'left');
    anna.heardAtMs.push(1_000);
    const annas = place({ state: 'left', reason: 'absent', endedAtMs: 45_000 });
    expect(
      found([anna, BEN()], [annas, bens({ endedAtMs: 42_000 })], [order({ committedAtMs: 40_000 })]),
    ).toEqual({});
  });

  test('a unit that lay free during a fault and its recovery', () => {
    const faults = [{ fromMs: 10_000, overMs: 15_000, recoveredMs: 30_000 }];
    const orders = [
      order({ isLive: false, endedAtMs: 11_000 }),
      order({ orderId: 'order-3', number: 3, buyerId: 'cal', committedAtMs: 30_000 }),
    ];
    const ben = BEN();
    ben.cancelled.add('order-2');
    const cal = bought('cal', 3);
    for (let ms = 2_000; ms <= 31_000; ms += 500) cal.heardAtMs.push(ms);
    const cals = place({ number: 3, buyerId: 'cal', state: 'bought', endedAtMs: 31_000 });
    expect(found([ben, cal], [bens(), cals], orders, { faults })).toEqual({});
    const truth = { places: [bens(), cals], orders, movements: [], reportedLost: 0 };
    expect(judgeQueue([ben, cal], truth, { ...QUEUE, faults })).toMatchObject({
      longestFreeMs: 0,
      longestFreeInFaultMs: 19_000,
    });
  });

  test('places in the order of a draw', () => {
    const anna = told(waiting('anna', 1, 13_000), 1, 'closed', CLOSED_MS, 2);
    expect(found([anna, BEN()], [place({ rank: 2 }), bens({ rank: 1 })], [order()])).toEqual({});
  });

  test('units that an operator has added are sold', () => {
    const movements = [{ atMs: 13_000, action: 'top-up', units: 1 }];
    const orders = [order(), order({ orderId: 'order-3', number: 3, buyerId: 'cal', committedAtMs: 13_500 })];
    const cals = place({ number: 3, buyerId: 'cal', state: 'bought', endedAtMs: 14_000 });
    const cal = bought('cal', 3);
    expect(found([BEN(), cal], [bens(), cals], orders, { movements })).toEqual({});
  });

  test('a hope that is as old as the fault', () => {
    const faults = [{ fromMs: 12_500, overMs: 20_000, recoveredMs: 35_000 }];
    const cal = waiting('cal', 3, 33_000);
    expect(found([BEN(), cal], [bens(), CALS], [order()], { faults })).toEqual({});
  });

  test('an answer that the next second makes true', () =>
    expect(found([BEN(), waiting('cal', 3, 12_000 - 1_000)], [bens(), CALS], [order()])).toEqual({}));

  test('hopes in the lobby of a draw', () => {
    const movements = [{ atMs: 45_000, action: 'window', units: 0 }];
    const late = { committedAtMs: 46_000, acceptedAtMs: 46_500 };
    const ben = bought('ben', 2);
    ben.offers.set('order-2', { ...ben.offers.get('order-2')!, untilMs: 59_000 });
    const found0 = found(
      [ben, waiting('cal', 3, 51_000)],
      [bens({ endedAtMs: 46_500 }), CALS],
      [order(late)],
      { movements },
    );
    expect(found0).toEqual({});
  });
});

describe('is found', () => {
  test('Q1: an accepted offer that is no order', () =>
    expect(found([BEN()], [bens()], [order({ isLive: false, endedAtMs: 30_000 })])).toMatchObject({
      lostAccepted: 1,
    }));

  test('Q1: an accepted offer whose order is gone, although its buyer cancelled it', () => {
    const ben = BEN();
    ben.cancelled.add('order-2');
    expect(found([ben], [bens()], [])).toMatchObject({ lostAccepted: 1 });
  });

  test('Q1: an acceptance that was refused before the time was over', () => {
    const ben = BEN();
    ben.acceptances.push({ orderId: 'order-2', answeredAtMs: 19_999, outcome: 'too late' });
    expect(found([ben], [bens()], [order()])).toEqual({ refusedInTime: 1 });
  });

  test('Q1: an offer that ended before its time', () => {
    const ben = BEN();
    ben.acceptances.pop();
    ben.told.pop();
    told(ben, 2, 'lapsed');
    const lapsed = bens({ state: 'lapsed', endedAtMs: 19_999 });
    expect(found([ben], [lapsed], [order({ isLive: false, endedAtMs: 19_999 })])).toEqual({ lapsedEarly: 1 });
  });

  test('Q1: more units in orders than the stock, also if only for a moment', () => {
    const orders = [
      order({ isLive: false, endedAtMs: 10_000 }),
      order({ orderId: 'order-3', number: 3, buyerId: 'cal', committedAtMs: 9_999 }),
    ];
    const cals = place({ number: 3, buyerId: 'cal', state: 'bought', endedAtMs: 12_000 });
    const ben = BEN();
    ben.cancelled.add('order-2');
    expect(found([ben, bought('cal', 3)], [bens(), cals], orders)).toEqual({ oversold: 1 });
  });

  test('Q1: a pause in which an offer lapsed, or was accepted', () => {
    const pausedMs = 12_000 - PAUSE_SLACK_MS - 1;
    const movements = [
      { atMs: pausedMs, action: 'pause', units: 0 },
      { atMs: 15_000, action: 'resume', units: 0 },
    ];
    expect(found([BEN()], [bens()], [order()], { movements })).toEqual({ endedInPause: 1 });
    const open = movements.slice(0, 1);
    expect(found([BEN()], [bens({ state: 'lapsed' })], [order()], { movements: open })).toMatchObject({
      endedInPause: 1,
    });
    const later = [{ ...movements[0]!, atMs: pausedMs + 1 }, movements[1]!];
    expect(found([BEN()], [bens()], [order()], { movements: later })).toEqual({});
  });

  test('Q1: more units in orders than the stock before an operator adds some', () => {
    const orders = [
      order(),
      order({ orderId: 'order-3', number: 3, buyerId: 'cal', committedAtMs: 12_999, acceptedAtMs: 14_000 }),
    ];
    const cals = place({ number: 3, buyerId: 'cal', state: 'bought', endedAtMs: 14_000 });
    const movements = [{ atMs: 13_000, action: 'top-up', units: 1 }];
    expect(found([BEN(), bought('cal', 3)], [bens(), cals], orders, { movements })).toEqual({ oversold: 1 });
  });

  test('units that nobody has', () => {
    const truth = { places: [bens()], orders: [order()], movements: [], reportedLost: 0 };
    const movements = [{ atMs: 13_000, action: 'top-up', units: 2 }];
    expect(judgeQueue([BEN()], truth, QUEUE)).toMatchObject({ sold: 1, unsold: 0 });
    expect(judgeQueue([BEN()], { ...truth, movements }, QUEUE)).toMatchObject({ sold: 1, unsold: 2 });
  });

  test('Q2: a later place got an offer, and one who was there did not', () =>
    expect(found([waiting(), BEN()], [place(), bens()], [order({ committedAtMs: 10_000 })])).toMatchObject({
      overtaken: 1,
    }));

  test('Q2: one who was overtaken during a fault, and did not get an offer after it', () => {
    const faults = [{ fromMs: 9_000, overMs: 9_500, recoveredMs: 24_500 }];
    expect(
      found([waiting(), BEN()], [place(), bens()], [order({ committedAtMs: 10_000 })], { faults }),
    ).toMatchObject({ overtaken: 1 });
  });

  test.each<[string, Partial<PlaceRow>]>([
    ['one who was there left as absent', { reason: 'absent' }],
    ['one left without having asked to', { reason: 'asked' }],
    ['one left at a limit', { reason: 'limit' }],
  ])('Q2: %s', (_, more) => {
    const left = place({ number: 3, buyerId: 'cal', state: 'left', endedAtMs: 30_000, ...more });
    const cal = CAL();
    cal.told.pop();
    told(cal, 3, 'left');
    expect(found([BEN(), cal], [bens(), left], [order()])).toEqual({ wronglyLeft: 1 });
  });

  test('Q3: a unit lay free while somebody waited', () => {
    const orders = [
      order({ isLive: false, endedAtMs: 20_000 }),
      order({ orderId: 'order-4', number: 4, buyerId: 'dan', committedAtMs: 21_000 + FREE_BOUND_MS }),
    ];
    const ben = BEN();
    ben.cancelled.add('order-2');
    const dans = place({ number: 4, buyerId: 'dan', state: 'bought', endedAtMs: 30_000 });
    const dan = bought('dan', 4);
    for (let ms = 2_000; ms <= 30_000; ms += 500) dan.heardAtMs.push(ms);
    expect(found([ben, dan], [bens(), dans], orders)).toEqual({ idle: 1 });
  });

  test('Q2: one whose rank is before was overtaken, although its number is behind', () =>
    expect(
      found(
        [CAL(), BEN()],
        [bens({ rank: 2 }), place({ number: 3, buyerId: 'cal', rank: 1 })],
        [order({ committedAtMs: 10_000 })],
      ),
    ).toMatchObject({ overtaken: 1 }));

  test('Q2: another rank than that of the draw', () => {
    const anna = told(waiting('anna', 1, 13_000), 1, 'closed', CLOSED_MS, 1);
    expect(found([anna, BEN()], [place({ rank: 2 }), bens({ rank: 1 })], [order()])).toEqual({
      wrongRanks: 1,
    });
  });

  test('Q3: a unit that nobody is offered, while another one comes back and goes all the time', () => {
    const numbers = Array.from({ length: 20 }, (_, i) => 10 + i);
    const orders = numbers.map((number, i) =>
      order({
        ...{ orderId: `order-${number}`, number, buyerId: `dan-${number}` },
        ...{ committedAtMs: 2_000 + i * 1_000, acceptedAtMs: 2_100 + i * 1_000 },
        ...(i < 19 && { isLive: false, endedAtMs: 2_900 + i * 1_000 }),
      }),
    );
    const dans = numbers.map((number) => bought(`dan-${number}`, number));
    for (const dan of dans) dan.cancelled.add([...dan.offers.keys()][0]!);
    const places = numbers.map((number, i) =>
      place({
        ...{ number, buyerId: `dan-${number}`, state: 'bought' },
        ...{ givenAtMs: 2_000 + i * 1_000, endedAtMs: 2_100 + i * 1_000 },
      }),
    );
    const late = place({ number: 100, buyerId: 'zoe' });
    expect(found([...dans, waiting('zoe', 100)], [...places, late], orders, { stock: 2 })).toEqual({
      idle: 1,
    });
  });

  test('Q5: told that it is hopeless, while a unit could still come', () =>
    expect(found([BEN(), waiting('cal', 3, 3_000)], [bens(), CALS], [order()])).toEqual({
      falselyHopeless: 3,
    }));

  test('Q5: told so after a unit has come back', () => {
    const ben = BEN();
    ben.cancelled.add('order-2');
    const orders = [order({ isLive: false, endedAtMs: 20_000 })];
    expect(found([ben, CAL()], [bens(), CALS], orders)).toMatchObject({ falselyHopeless: 17 });
  });

  test('Q5: told to wait, when no unit could come any more', () => {
    expect(found([BEN(), waiting('cal', 3)], [bens(), CALS], [order()])).toEqual({ falselyHopeful: 21 });
    const late = waiting('cal', 3, 12_000 + HOPELESS_SLACK_MS + 3_000);
    expect(found([BEN(), late], [bens(), CALS], [order()])).toEqual({ falselyHopeful: 1 });
  });

  test('Q6: two places at a time', () =>
    expect(
      found(
        [BEN(), CAL()],
        [
          bens(),
          place({ number: 1, buyerId: 'cal', state: 'left', reason: 'limit', endedAtMs: 70_000 }),
          CALS,
        ],
        [order()],
      ),
    ).toMatchObject({ doubled: 1 }));

  test('Q6: a place that was told and is gone, or is of another buyer', () => {
    expect(found([BEN(), CAL()], [bens()], [order()])).toEqual({ lostPlaces: 1, withoutEnd: 1 });
    expect(
      found([BEN(), CAL(), newMemory('dan')], [bens(), place({ number: 3, buyerId: 'dan' })], [order()]),
    ).toMatchObject({ lostPlaces: 1 });
  });

  test.each<[ToldState, ToldState]>([
    ['offered', 'waiting'],
    ['offered', 'hopeless'],
    ['left', 'waiting'],
    ['lapsed', 'offered'],
  ])('Q6: %s, then %s', (first, then) => {
    const cal = newMemory('cal');
    told(told(told(told(cal, 3, 'waiting'), 3, first), 3, then), 3, 'closed');
    expect(found([BEN(), cal], [bens(), CALS], [order()])).toEqual({ tookBack: 1 });
  });

  test('people who were told no end, or a wrong one', () => {
    const open = CAL();
    open.told.pop();
    expect(found([BEN(), open], [bens(), CALS], [order()])).toEqual({ withoutEnd: 1 });
    expect(found([BEN(), told(CAL(), 3, 'bought')], [bens(), CALS], [order()])).toEqual({ withoutEnd: 1 });
    expect(found([BEN(), newMemory('cal')], [bens()], [order()])).toEqual({ withoutEnd: 1 });
  });

  test('a place that nobody asked for, and an order of no place', () => {
    expect(found([BEN()], [bens(), CALS], [order()])).toEqual({ invented: 1 });
    expect(found([BEN()], [bens()], [order(), order({ orderId: '9', number: 0 })], { stock: 2 })).toEqual({
      invented: 1,
    });
  });
});
