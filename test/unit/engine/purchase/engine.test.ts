import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Board } from '../../../../src/engine/board/board.ts';
import type { Directory, SaleListener, SaleView } from '../../../../src/engine/board/directory.ts';
import type {
  Backend,
  BackendEvents,
  HeldOrder,
  Outcome,
  Purchase,
  QueueSettings,
  Recall,
  Rejection,
  Sale,
  SaleState,
  SegmentRef,
  TokenFault,
} from '../../../../src/engine/contract.ts';
import { BackendCorrupt, Busy, NotExecuted, StaleGeneration } from '../../../../src/engine/errors.ts';
import { Engine, type EngineOptions } from '../../../../src/engine/purchase/engine.ts';
import { PARKED_MAX_MS } from '../../../../src/engine/purchase/parking.ts';
import { homeSegment } from '../../../../src/engine/sale/home-segment.ts';
import { rulesOf } from '../../../../src/engine/sale/rules.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { elapse, freezeTime, settledTurns } from '../../../support/engine/frozen-time.ts';
import { aPurchase } from '../../../support/engine/purchases.ts';
import { ScriptedTakes, SHORT, TAKEN } from '../../../support/engine/scripted-takes.ts';
import { aSale } from '../../../support/sales.ts';

const SEGMENTS = 4;
const LIMIT = 2;
const LIVES_MS = 500;
const SLOT = 0;
const QUEUE: QueueSettings = {
  order: 'fifo',
  offerSeconds: 60,
  presenceSeconds: 60,
  maxWaiting: 100,
  fit: 'wait',
};
const STARTS_AT = Date.UTC(2026, 0, 1);
const ENDS_AT = Date.UTC(2027, 0, 1);

/** A purchase and its outcomes. */
interface Bought {
  readonly purchase: Purchase;
  readonly told: Outcome[];
}

let takes: ScriptedTakes;
let board: Board;
let view: SaleView;
let events: BackendEvents[];
let recall: (buyerIds: readonly string[], saleId: string) => Promise<Recall>;
let recalls: (readonly string[])[];
let directory: { [K in keyof Directory]: ReturnType<typeof vi.fn<Directory[K]>> };
let listener: SaleListener;
let faults: unknown[];
/** Orders that Postgres must be asked about. */
let uncommitted: string[];
let options: EngineOptions;
let engine: Engine;

beforeEach(async () => {
  freezeTime();
  takes = new ScriptedTakes();
  board = new Board(1);
  events = [];
  recalls = [];
  recall = async (buyerIds) => ({
    committed: 0,
    holdings: buyerIds.map((buyerId) => ({ buyerId, orders: [] })),
  });
  view = viewOf({});
  directory = {
    lookup: vi.fn(async (saleId) => {
      if (saleId === 'sale') listener.changed(view);
    }),
    refresh: vi.fn(async () => listener.changed(view)),
    listen: vi.fn((added) => {
      listener = added;
    }),
  };
  await start({ durable: true });
});

afterEach(() => vi.useRealTimers());

async function start({ durable }: { durable: boolean }, changes: Partial<EngineOptions> = {}): Promise<void> {
  let nextId = 1001;
  faults = [];
  uncommitted = [];
  const backend = {
    durable,
    takes,
    sales: {
      recall: ({ saleId }: SegmentRef, buyerIds: readonly string[]) => {
        recalls.push(buyerIds);
        return recall(buyerIds, saleId);
      },
    },
    subscribe: async (added: BackendEvents) => {
      events.push(added);
      return async () => {
        events.splice(events.indexOf(added), 1);
      };
    },
  } as unknown as Backend;
  options = {
    backend,
    directory,
    board,
    worker: 7,
    nextOrderId: () => String(nextId++),
    requestDeadlineMs: LIVES_MS,
    laneCapacity: 100,
    onFault: (error) => faults.push(error),
    onUncommitted: (_, orders) => uncommitted.push(...orders.map(({ orderId }) => orderId)),
    ...changes,
  };
  engine = await Engine.start(options);
}

function viewOf(spec: Partial<Sale>, state: SaleState = 'open', generation = 1): SaleView {
  const sale = aSale({
    id: 'sale',
    segments: SEGMENTS,
    perBuyerLimit: LIMIT,
    startsAt: STARTS_AT,
    endsAt: ENDS_AT,
    ...spec,
  });
  return { record: { sale, state, generation, epoch: 1, rules: rulesOf(sale) }, slot: SLOT };
}

/** Tells the worker of a change of the sale. */
function learn(spec: Partial<Sale> = {}, state: SaleState = 'open', generation = 1): void {
  view = viewOf(spec, state, generation);
  listener.changed(view);
}

function buy(spec: Partial<Purchase> = {}): Bought {
  const purchase = aPurchase(spec);
  const told: Outcome[] = [];
  engine.buy(purchase, (outcome) => told.push(outcome));
  return { purchase, told };
}

/** The directory looks the sale up. @returns ends that */
function lookingUp(): () => void {
  let found = () => {};
  directory.lookup.mockReturnValue(
    new Promise<void>((resolve) => {
      found = resolve;
    }),
  );
  return () => found();
}

const codes = (...bought: Bought[]) =>
  bought.map(({ told }) => told.map((outcome) => outcome.code).join(' then ') || 'waits');

interface Advance {
  readonly buyerId?: string;
  readonly generation?: number;
  readonly rejected?: readonly Rejection[];
  readonly tails?: readonly string[];
}

function advance(
  seq: number,
  { buyerId = 'anna', generation = 1, rejected = [], tails }: Advance = {},
): void {
  const segment = homeSegment(buyerId, SEGMENTS);
  const watermark = { saleId: 'sale', segment, generation, seq, orders: seq, rejected };
  for (const { watermarks } of events) watermarks?.([tails ? { ...watermark, tails } : watermark]);
}

/** Two buyers with the same home segment, and one with another. */
function neighbours(): [string, string, string] {
  const homes = Array.from({ length: 20 }, (_, i) => `buyer-${i}`);
  const [first] = homes;
  const isNear = (buyer: string) => homeSegment(buyer, SEGMENTS) === homeSegment(first!, SEGMENTS);
  return [first!, homes.slice(1).find(isNear)!, homes.find((buyer) => !isNear(buyer))!];
}

function anOrder(spec: Partial<HeldOrder> = {}): HeldOrder {
  return { orderId: '900', quantity: 1, key: 'click', seq: 5, ...spec };
}

function remember(committed: number, ...orders: HeldOrder[]): void {
  recall = async (buyerIds) => ({ committed, holdings: buyerIds.map((buyerId) => ({ buyerId, orders })) });
}

describe('a sale that this worker does not know', () => {
  it('is looked up, and the purchase continues', async () => {
    const anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(1);
    expect(codes(anna)).toEqual(['committed']);
    buy({ buyerId: 'ben' });
    await takes.next();
    expect(directory.lookup).toHaveBeenCalledTimes(1);
  });

  it('is unknown if the directory does not know it', async () => {
    const anna = buy({ saleId: 'nothing' });
    await settledTurns();
    expect(codes(anna)).toEqual(['unknown_sale']);
  });

  it.each([
    ['rejects', async () => Promise.reject(new Error('away'))],
    [
      'throws',
      () => {
        throw new Error('away');
      },
    ],
  ])('is unavailable if the directory %s', async (_, lookup) => {
    directory.lookup.mockImplementation(lookup);
    const anna = buy();
    await settledTurns();
    expect(codes(anna)).toEqual(['unavailable']);
  });

  it('is unavailable at once while the store is away', async () => {
    takes.ready = false;
    directory.lookup.mockReturnValue(new Promise(() => {}));
    expect(codes(buy())).toEqual(['unavailable']);
  });

  it('is busy if too many sales are looked up', async () => {
    directory.lookup.mockRejectedValue(new Busy('1,000 lookups of sales wait'));
    const anna = buy();
    await settledTurns();
    expect(codes(anna)).toEqual(['busy']);
  });

  it('does not delay a purchase beyond its deadline if the directory does not answer', async () => {
    directory.lookup.mockReturnValue(new Promise(() => {}));
    const anna = buy();
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['busy']);
  });

  it('is looked up within the deadline of the purchase, which does not start again', async () => {
    const found = lookingUp();
    const anna = buy();
    await elapse(LIVES_MS - 100);
    learn();
    found();
    await takes.next();
    expect(codes(anna)).toEqual(['waits']);
    await elapse(150);
    expect(codes(anna)).toEqual(['unknown']);
  });

  it('sells nothing if it is found after the deadline', async () => {
    const found = lookingUp();
    const anna = buy();
    await elapse(LIVES_MS + 50);
    learn();
    found();
    await settledTurns();
    expect(takes.asks).toEqual([]);
    expect(codes(anna)).toEqual(['busy']);
  });

  it('reads no record for a purchase whose deadline has passed before the sale was found', async () => {
    const found = lookingUp();
    buy({ key: 'click' });
    await elapse(LIVES_MS + 50);
    learn({}, 'paused');
    found();
    await settledTurns();
    expect(recalls).toEqual([]);
  });

  it('reads no record for a purchase whose refusal is final', async () => {
    view = viewOf({}, 'paused');
    const anna = buy();
    await settledTurns();
    expect([codes(anna), recalls]).toEqual([['paused'], []]);
  });

  it.each<[string, Partial<Purchase>, Outcome]>([
    ['plain', {}, { code: 'ended', endedAt: ENDS_AT }],
    ['keyed', { key: 'click' }, { code: 'committed', orderId: '900', quantity: 1 }],
    [
      'too large',
      { quantity: 9 },
      { code: 'invalid_request', detail: `quantity must be a whole number from 1 to ${LIMIT}` },
    ],
  ])('answers a %s purchase after its end as a known sale does', async (_, spec, outcome) => {
    view = viewOf({}, 'closed');
    remember(5, anOrder());
    const anna = buy(spec);
    await settledTurns();
    expect(anna.told).toEqual([outcome]);
  });
});

describe('refusals without asking the store', () => {
  beforeEach(() => learn());

  it.each([0, -1, 1.5, LIMIT + 1, Number.NaN])(
    'are made of a quantity of %d, before all other checks',
    (quantity) => {
      const detail = `quantity must be a whole number from 1 to ${LIMIT}`;
      const refused = { code: 'invalid_request', detail };
      expect(buy({ quantity }).told).toEqual([refused]);
      board.close(SLOT, 1, monotonicMs());
      learn({}, 'closed');
      expect(buy({ quantity, key: 'click' }).told).toEqual([refused]);
    },
  );

  it.each<[string, Partial<Sale>, SaleState, Outcome]>([
    ['is closed', {}, 'closed', { code: 'ended', endedAt: ENDS_AT }],
    ['is paused', {}, 'paused', { code: 'paused' }],
    ['has not begun', { startsAt: ENDS_AT - 1 }, 'open', { code: 'not_started', startsAt: ENDS_AT - 1 }],
    ['is over', { endsAt: STARTS_AT + 1 }, 'open', { code: 'ended', endedAt: STARTS_AT + 1 }],
    ['is over and paused', { endsAt: STARTS_AT + 1 }, 'paused', { code: 'ended', endedAt: STARTS_AT + 1 }],
    [
      'has not begun and is paused',
      { startsAt: ENDS_AT - 1 },
      'paused',
      { code: 'not_started', startsAt: ENDS_AT - 1 },
    ],
    ['has not begun and is closed', { startsAt: ENDS_AT - 1 }, 'closed', { code: 'ended', endedAt: ENDS_AT }],
  ])('are made in a sale that %s', async (_, spec, state, outcome) => {
    learn(spec, state);
    expect(buy().told).toEqual([outcome]);
    await settledTurns();
    expect([takes.asks, recalls]).toEqual([[], []]);
  });

  it('are not counted as under way: they start no timer', () => {
    learn({}, 'paused');
    const timers = vi.getTimerCount();
    expect(codes(buy())).toEqual(['paused']);
    expect(vi.getTimerCount()).toBe(timers);
  });

  it('are made in a sale that is sold out on the board', async () => {
    board.close(SLOT, 1, monotonicMs());
    expect(codes(buy())).toEqual(['sold_out']);
    await settledTurns();
    expect([takes.asks, recalls]).toEqual([[], []]);
  });

  it('depend on the time: the window includes its first instant and excludes its last', () => {
    const codeAt = (now: number) => {
      vi.setSystemTime(now);
      return codes(buy())[0];
    };
    expect([STARTS_AT - 1, STARTS_AT, ENDS_AT - 1, ENDS_AT].map(codeAt)).toEqual([
      'not_started',
      'waits',
      'waits',
      'ended',
    ]);
  });

  it('are not made for the time in a sale without an end', async () => {
    learn({ endsAt: undefined });
    vi.setSystemTime(Date.UTC(2080, 0, 1));
    buy();
    await takes.next();
  });
});

describe('a retake after a late payment', () => {
  const retake = { key: 'retake:900', onBehalf: true };

  it.each<[string, () => void]>([
    ['over', () => learn({ endsAt: STARTS_AT + 1 })],
    ['sold out by the board', () => board.close(SLOT, 1, monotonicMs())],
  ])('is sent to the segment in a sale that is %s', async (_, happens) => {
    learn();
    happens();
    buy(retake);
    expect((await takes.next()).orders).toMatchObject([{ key: 'retake:900' }]);
    expect(recalls).toEqual([]);
  });

  it('is sent to the segment by a worker that did not know the sale', async () => {
    view = viewOf({ endsAt: STARTS_AT + 1 });
    buy(retake);
    await takes.next();
  });

  it.each<[SaleState, Outcome['code']]>([
    ['paused', 'paused'],
    ['closed', 'ended'],
  ])('is refused in a sale that is %s', async (state, code) => {
    learn({}, state);
    const bought = buy(retake);
    await settledTurns();
    expect([codes(bought), takes.asks]).toEqual([[code], []]);
  });
});

describe('a sale that requires a token', () => {
  const ALL_FAULTS: TokenFault[] = ['expired', 'generation', 'alien'];

  /** The text of a token names its fault. */
  const checkToken = vi.fn(({ token }: Purchase) => ALL_FAULTS.find((fault) => fault === token));

  beforeEach(async () => {
    checkToken.mockClear();
    await start({ durable: true }, { checkToken });
    learn({ requireToken: true });
  });

  it('serves a purchase with a valid token', async () => {
    const anna = buy({ token: 'good' });
    expect((await takes.next()).buyers).toEqual(['anna']);
    expect(codes(anna)).toEqual(['waits']);
    expect(checkToken).toHaveBeenCalledExactlyOnceWith(anna.purchase, 1);
  });

  it.each(['', 'click'])(
    'refuses at once a purchase without a token or with a forged one, and reads nothing (key %j)',
    (key) => {
      const bought = [buy({ key }), buy({ key, token: '' }), buy({ key, token: 'alien' })];
      expect(codes(...bought)).toEqual(['token_required', 'token_required', 'token_invalid']);
      expect([takes.asks, recalls]).toEqual([[], []]);
    },
  );

  it('refuses at once a purchase whose token was valid once, if it has no key', () => {
    expect(ALL_FAULTS.map((token) => buy({ token }).told)).toEqual(
      ALL_FAULTS.map((reason) => [{ code: 'token_invalid', reason }]),
    );
    expect([takes.asks, recalls]).toEqual([[], []]);
  });

  it.each(['expired', 'generation'])('finds the order of a key although the token is %s', async (token) => {
    remember(5, anOrder());
    const repeated = buy({ key: 'click', token });
    const another = buy({ key: 'other', token });
    await settledTurns();
    expect(repeated.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
    expect(another.told).toEqual([{ code: 'token_invalid', reason: token }]);
    expect(takes.asks).toEqual([]);
  });

  it('answers that it is sold out or ended before it asks for a token', () => {
    board.close(SLOT, 1, monotonicMs());
    expect(codes(buy())).toEqual(['sold_out']);
    learn({ requireToken: true }, 'closed');
    expect(codes(buy({ token: 'alien' }))).toEqual(['sold_out']);
    expect(codes(buy({ token: 'alien', key: 'click' }))).toEqual(['token_invalid']);
    expect(recalls).toEqual([]);
  });

  it('serves a retake without a token', async () => {
    buy({ key: 'retake:900', onBehalf: true });
    await takes.next();
    expect(checkToken).not.toHaveBeenCalled();
  });

  it('asks for a token also if this worker still has to read the sale', async () => {
    await start({ durable: true }, { checkToken });
    expect(engine.asksForToken('sale')).toBe(true);
    view = viewOf({ requireToken: true }, 'open', 3);
    const bought = [
      buy({ buyerId: 'bob' }),
      buy({ token: 'expired' }),
      buy({ buyerId: 'cleo', token: 'good' }),
    ];
    expect((await takes.next()).buyers).toEqual(['cleo']);
    expect(codes(...bought)).toEqual(['token_required', 'token_invalid', 'waits']);
    expect(checkToken).toHaveBeenLastCalledWith(expect.objectContaining(bought[2]!.purchase), 3);
    expect(engine.asksForToken('sale')).toBe(true);
    learn({ requireToken: false }, 'open', 3);
    expect(engine.asksForToken('sale')).toBe(false);
  });

  it.each<[string, Partial<Sale>, boolean]>([
    ['requires a token', { requireToken: true }, true],
    ['has a queue', { requireToken: false, queue: QUEUE }, true],
    ['had a queue, whose offers can still be accepted', { requireToken: false, hadQueue: true }, true],
    ['never had one', { requireToken: false, hadQueue: false }, false],
    ['says nothing of one', { requireToken: false }, false],
  ])('and one that %s: whether they ask for a token', (_, spec, asks) => {
    learn(spec);
    expect(engine.asksForToken('sale')).toBe(asks);
  });

  it('does not read the sale again for a purchase whose rules it has replaced already', async () => {
    learn({ requireToken: false });
    buy({ token: 'good' });
    const ask = await takes.next();
    learn({ requireToken: true });
    await ask.refuse('outdated');
    await takes.next();
    expect(directory.refresh).not.toHaveBeenCalled();
  });

  it('judges unsent purchases again when it gets other rules', async () => {
    learn({ requireToken: false });
    buy({ buyerId: 'first' });
    const first = await takes.next();
    const [bob, cleo] = [buy({ buyerId: 'bob' }), buy({ buyerId: 'cleo', token: 'good' })];
    learn({ requireToken: true });
    await first.serve([TAKEN]);
    expect((await takes.next()).buyers).toEqual(['cleo']);
    expect(codes(bob, cleo)).toEqual(['token_required', 'waits']);
  });

  it('judges purchases again whose segment has rules that this worker learns later, or has just learned', async () => {
    learn({ requireToken: false });
    const early = [buy({ buyerId: 'bob' }), buy({ buyerId: 'cleo', token: 'good' })];
    // Each has its own home segment.
    for (const ask of [await takes.next(), await takes.next()]) await ask.refuse('outdated');
    await settledTurns();
    expect(codes(...early)).toEqual(['waits', 'waits']);
    learn({ requireToken: true });
    const again = await takes.next();
    expect(again.buyers).toEqual(['cleo']);
    expect(again.batch.rules).toBe(rulesOf(view.record.sale));
    expect(codes(...early)).toEqual(['token_required', 'waits']);
    learn({ requireToken: false });
    await again.refuse('outdated');
    expect((await takes.next()).buyers).toEqual(['cleo']);
  });

  it('does not send an unconfirmed purchase again if other rules refuse it', async () => {
    learn({ requireToken: false });
    const bob = buy({ buyerId: 'bob' });
    await (await takes.next()).loseReply();
    learn({ requireToken: true });
    await elapse(100);
    await (await takes.next()).refuse('outdated');
    await settledTurns();
    expect(codes(bob)).toEqual(['unknown']);
    expect(takes.asks).toHaveLength(2);
  });

  it('keeps the verdict on a purchase in the next generation: let in is served, refused is refused', async () => {
    const anna = buy({ token: 'good' });
    await (await takes.next()).refuse('stale');
    const bob = buy({ buyerId: 'bob', token: 'expired', key: 'click' });
    await settledTurns();
    expect(codes(anna, bob)).toEqual(['waits', 'waits']);
    learn({ requireToken: true }, 'open', 2);
    expect((await takes.next()).buyers).toEqual(['anna']);
    await settledTurns();
    expect(codes(anna, bob)).toEqual(['waits', 'token_invalid']);
    expect(takes.asks).toHaveLength(2);
  });
});

describe('a keyed purchase that would be refused', () => {
  const SITUATIONS: [string, () => void, Outcome['code']][] = [
    ['sold out', () => board.close(SLOT, 1, monotonicMs()), 'sold_out'],
    ['closed', () => learn({}, 'closed'), 'ended'],
    ['over', () => learn({ endsAt: STARTS_AT + 1 }), 'ended'],
    ['paused', () => learn({}, 'paused'), 'paused'],
    ['not begun', () => learn({ startsAt: ENDS_AT - 1 }), 'not_started'],
  ];

  beforeEach(() => learn());

  describe.each(SITUATIONS)('because the sale is %s', (_, arrange, refusal) => {
    beforeEach(() => arrange());

    it('is refused if its key is new', async () => {
      remember(9, anOrder({ key: 'another' }), anOrder({ key: '' }));
      const anna = buy({ key: 'click' });
      await settledTurns();
      expect(codes(anna)).toEqual([refusal]);
      expect(takes.asks).toEqual([]);
    });

    it('is committed if its order is committed', async () => {
      remember(5, anOrder({ key: 'another', orderId: '1' }), anOrder());
      const anna = buy({ key: 'click' });
      await settledTurns();
      expect(anna.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
    });

    it('waits for the commit of its order', async () => {
      remember(4, anOrder());
      const anna = buy({ key: 'click' });
      await settledTurns();
      advance(4);
      await settledTurns();
      expect(codes(anna)).toEqual(['waits']);
      // The record was read once, and sync was told that somebody waits.
      expect(recalls).toHaveLength(1);
      expect(takes.hints).toEqual([expect.objectContaining({ awaited: true })]);
      advance(5);
      expect(anna.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
    });

    it('is accepted if it has an order and does not wait for the commit', async () => {
      remember(4, anOrder());
      const anna = buy({ key: 'click', awaitCommit: false });
      await settledTurns();
      expect(anna.told).toEqual([{ code: 'accepted', orderId: '900', quantity: 1 }]);
    });

    it('is a mismatch if its order has another quantity', async () => {
      remember(5, anOrder({ quantity: 2 }));
      const anna = buy({ key: 'click' });
      await settledTurns();
      expect(anna.told).toEqual([{ code: 'idempotency_mismatch', orderId: '900', quantity: 2 }]);
    });
  });

  describe('when the record can’t be read', () => {
    beforeEach(() => learn({}, 'paused'));

    it('is unavailable', async () => {
      recall = async () => Promise.reject(new Error('away'));
      const anna = buy({ key: 'click' });
      await settledTurns();
      expect(codes(anna)).toEqual(['unavailable']);
    });

    it('is unavailable at once while the store is away', () => {
      takes.ready = false;
      recall = () => new Promise(() => {});
      expect(codes(buy({ key: 'click' }))).toEqual(['unavailable']);
    });

    it('is answered at its deadline: nothing was taken', async () => {
      recall = () => new Promise(() => {});
      const anna = buy({ key: 'click' });
      await elapse(LIVES_MS + 50);
      expect(codes(anna)).toEqual(['busy']);
    });
  });

  it.each<[string, HeldOrder[], Outcome['code']]>([
    ['does not know its key', [], 'paused'],
    ['has its order', [anOrder()], 'committed'],
  ])('by its segment is answered by the record, which %s', async (_, held, code) => {
    remember(5, ...held);
    const anna = buy({ key: 'click' });
    await (await takes.next()).refuse('paused');
    await settledTurns();
    expect([codes(anna), recalls]).toEqual([[code], [['anna']]]);
  });

  it('is unknown, and reports nothing, if its order is missing when a watermark has passed it', async () => {
    learn({}, 'paused');
    remember(4, anOrder());
    const anna = buy({ key: 'click' });
    await settledTurns();
    expect(codes(anna)).toEqual(['waits']);
    remember(4);
    advance(5, { tails: ['77'] });
    await settledTurns();
    expect([codes(anna), uncommitted, faults]).toEqual([['unknown'], [], []]);
  });

  it('is answered at its deadline, and the bug is reported, if reading its record fails in the program', async () => {
    learn({}, 'paused');
    const bug = new Error('a bug');
    vi.spyOn(takes, 'ready', 'get').mockImplementationOnce(() => {
      throw bug;
    });
    const anna = buy({ key: 'click' });
    await settledTurns();
    expect([codes(anna), faults]).toEqual([['waits'], [bug]]);
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['busy']);
  });

  it('shares one read of records with the others of its turn', async () => {
    learn({}, 'paused');
    const [first, near] = neighbours();
    const bought = [first, near].map((buyerId) => buy({ buyerId, key: 'click' }));
    await settledTurns();
    expect(recalls).toEqual([[first, near]]);
    expect(codes(...bought)).toEqual(['paused', 'paused']);
  });

  it('is settled by the record of the newer generation, not by a log entry of an older one', async () => {
    learn({}, 'paused');
    let answer = (_: Recall) => {};
    recall = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const anna = buy({ key: 'click' });
    await settledTurns();
    learn({}, 'paused', 2);
    remember(0, anOrder({ seq: 0 }));
    answer({ committed: 4, holdings: [{ buyerId: 'anna', orders: [anOrder()] }] });
    await settledTurns();
    expect(anna.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
  });
});

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

describe('a rebuilt sale', () => {
  beforeEach(() => learn());

  it('gets the purchase again in the generation that the directory finds', async () => {
    const anna = buy();
    view = viewOf({}, 'open', 2);
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
    recall = async () => ({
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
    recall = () => Promise.reject(new StaleGeneration('sale', 2));
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

it('the view of a sale is what the directory told, and is looked up once', async () => {
  expect(await engine.view('sale')).toEqual({ record: view.record, slot: SLOT });
  expect(await engine.view('sale')).toEqual({ record: view.record, slot: SLOT });
  expect(directory.lookup).toHaveBeenCalledTimes(1);
});

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

  it('has a purchase in flight, whose segment is gone, wait for its deadline: it may be a loss that is mended', async () => {
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
    recall = () => new Promise((_, reject) => (answer = reject));
    const anna = buy({ key: 'click' });
    await settledTurns();
    listener.gone('sale');
    recall = () => Promise.reject(new StaleGeneration('sale', 1));
    answer(new StaleGeneration('sale', 1));
    await settledTurns();
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['unavailable']);
  });

  it('leaves a repeated purchase unknown whose order is in the record, which came late', async () => {
    learn({}, 'closed');
    let answer = (_: Recall) => {};
    recall = () => new Promise((resolve) => (answer = resolve));
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
    recall = async () => Promise.reject(new StaleGeneration('sale', 1));
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

describe('a watermark that names another entry under the same number', () => {
  let anna: Bought;

  beforeEach(async () => {
    learn();
    anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 3 });
  });

  async function nameAnother(): Promise<void> {
    advance(3, { tails: ['77'] });
    await settledTurns();
  }

  it('does not settle the purchase: the record tells', async () => {
    remember(3, anOrder({ orderId: '1001', seq: 3 }));
    await nameAnother();
    expect(recalls).toEqual([['anna']]);
    expect(anna.told).toEqual([{ code: 'committed', orderId: '1001', quantity: 1 }]);
  });

  it('lets the purchase wait if the record has the order beyond the cursor', async () => {
    remember(2, anOrder({ orderId: '1001', seq: 3 }));
    await nameAnother();
    expect(codes(anna)).toEqual(['waits']);
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['accepted']);
  });

  it('shows a loss if the record lacks the order and the cursor has not reached its entry', async () => {
    remember(2, anOrder({ orderId: '900' }));
    await nameAnother();
    expect(codes(anna)).toEqual(['unknown']);
    expect(faults).toHaveLength(1);
  });

  it('makes Postgres tell whether the order is lost or was returned if the cursor has passed its entry', async () => {
    remember(3, anOrder({ orderId: '900' }));
    await nameAnother();
    expect(codes(anna)).toEqual(['unknown']);
    expect(faults).toEqual([]);
    // Its lane has reported it too, because the number of its entry belongs to another one.
    expect(new Set(uncommitted)).toEqual(new Set(['1001']));
  });

  it('makes Postgres tell about the orders of the replaced entry although no purchase waits', async () => {
    const another = buy({ awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 4 });
    expect(codes(another)).toEqual(['accepted']);
    remember(4, anOrder({ orderId: '900' }));
    advance(4, { tails: ['1001', '77'] });
    await settledTurns();
    expect(uncommitted).toEqual(['1002']);
  });

  it('makes Postgres tell about an order of an entry that it does not name, if the record lacks it', async () => {
    const ben = buy();
    await (await takes.next()).serve([TAKEN], { seq: 4 });
    remember(4);
    advance(4, { tails: ['1002'] });
    await settledTurns();
    expect(codes(anna, ben)).toEqual(['unknown', 'committed']);
    expect([uncommitted, faults]).toEqual([['1001'], []]);
  });

  it('makes the record be read also if it comes before the reply to the take', async () => {
    const ben = buy();
    const ask = await takes.next();
    advance(4, { tails: ['1001', '77'] });
    remember(4, anOrder({ orderId: '1002', seq: 4 }));
    await ask.serve([TAKEN], { seq: 4 });
    await settledTurns();
    expect(recalls).toContainEqual(['anna']);
    expect(ben.told).toEqual([{ code: 'committed', orderId: '1002', quantity: 1 }]);
  });

  it('makes the purchase unknown if the record can’t be read', async () => {
    recall = async () => Promise.reject(new Error('away'));
    await nameAnother();
    expect(codes(anna)).toEqual(['waits']);
    expect(recalls).toHaveLength(1);
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['unknown']);
  });

  it('makes the record of the newer generation be read if the sale was rebuilt meanwhile', async () => {
    let refuse = (_: Error) => {};
    recall = () =>
      new Promise((_, reject) => {
        refuse = reject;
      });
    await nameAnother();
    learn({}, 'open', 2);
    remember(0, anOrder({ orderId: '1001', seq: 0 }));
    refuse(new StaleGeneration('sale', 1));
    await settledTurns();
    expect(anna.told).toEqual([{ code: 'committed', orderId: '1001', quantity: 1 }]);
  });

  it('makes that record be read once more, and no more often, if a newer watermark does not name the order either', async () => {
    const reads: { answer(found: Recall): void; fail(error: Error): void }[] = [];
    recall = () => new Promise((answer, fail) => reads.push({ answer, fail }));
    await nameAnother();
    learn({}, 'open', 2);
    reads[0]!.fail(new StaleGeneration('sale', 1));
    await settledTurns();
    advance(5, { generation: 2, tails: ['88'] });
    remember(3, anOrder({ orderId: '1001', seq: 4 }));
    reads[1]!.answer(await recall(['anna'], 'sale'));
    await settledTurns();
    expect(recalls).toHaveLength(3);
    expect(codes(anna)).toEqual(['waits']);
  });
});

describe('a new connection to the backend', () => {
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

describe('the deadline', () => {
  it.each([
    ['queued', true, 'busy'],
    ['sent', true, 'unknown'],
    ['taken', true, 'accepted'],
    ['taken', false, 'unknown'],
  ])('of a purchase that is %s (durable: %s) makes it %s', async (phase, durable, code) => {
    await start({ durable });
    learn();
    const [first, near] = neighbours();
    const bought = buy({ buyerId: first });
    const ask = await takes.next();
    if (phase === 'taken') await ask.serve([TAKEN]);
    const judged = phase === 'queued' ? buy({ buyerId: near }) : bought;
    await elapse(LIVES_MS + 50);
    expect(codes(judged)).toEqual([code]);
  });

  it('settles a purchase once, whatever comes later', async () => {
    learn();
    const anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    await elapse(LIVES_MS + 50);
    advance(1);
    expect(codes(anna)).toEqual(['accepted']);
  });
});

describe('a caller who throws', () => {
  const thrower = (told: Outcome[]) => (outcome: Outcome) => {
    told.push(outcome);
    throw new Error('a bug of the caller');
  };

  it('does not affect other purchases, and is reported', async () => {
    learn();
    const [first, near] = neighbours();
    const told: Outcome[] = [];
    engine.buy(aPurchase({ buyerId: first, awaitCommit: false }), thrower(told));
    const ben = buy({ buyerId: near });
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    expect(codes(ben)).toEqual(['waits']);
    advance(1, { buyerId: first });
    expect(codes(ben)).toEqual(['committed']);
    expect(told.map((outcome) => outcome.code)).toEqual(['accepted']);
    expect(faults).toHaveLength(1);
    await engine.close();
  });

  it('does not prevent the commits and deadlines of other purchases', async () => {
    learn();
    const [first, near] = neighbours();
    engine.buy(aPurchase({ buyerId: first }), thrower([]));
    const ben = buy({ buyerId: near });
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(1, { buyerId: first });
    expect(codes(ben)).toEqual(['committed']);
    engine.buy(aPurchase({ buyerId: first }), thrower([]));
    const cleo = buy({ buyerId: near });
    await elapse(LIVES_MS + 50);
    expect(codes(cleo)).toEqual(['busy']);
    expect(faults).toHaveLength(2);
  });

  it('is called once, also for an unknown sale', async () => {
    const told: Outcome[] = [];
    engine.buy(aPurchase({ saleId: 'nothing' }), thrower(told));
    await settledTurns();
    expect(told).toEqual([{ code: 'unknown_sale' }]);
    expect(faults).toHaveLength(1);
  });
});

describe('a worker that counts batches', () => {
  it('leaves no purchase without an answer if the counter throws', async () => {
    await start(
      { durable: true },
      {
        onBatch: () => {
          throw new Error('a bug');
        },
      },
    );
    learn();
    const anna = buy();
    await settledTurns();
    for (const ask of takes.asks) await ask.serve([TAKEN], { seq: 1 });
    advance(1);
    expect(anna.told).toHaveLength(1);
    expect(faults).toHaveLength(1);
    await engine.close();
  });
});

describe('closing', () => {
  it('waits for purchases under way, and leaves no timer', async () => {
    learn();
    const anna = buy();
    const ask = await takes.next();
    const closed = vi.fn();
    const closing = engine.close().then(closed);
    await ask.serve([TAKEN], { seq: 1 });
    expect(closed).not.toHaveBeenCalled();
    advance(1);
    await closing;
    expect(codes(anna)).toEqual(['committed']);
    expect([events, vi.getTimerCount()]).toEqual([[], 0]);
  });

  it('waits for purchases whose sale is being looked up', async () => {
    const found = lookingUp();
    const anna = buy();
    const closed = vi.fn();
    const closing = engine.close().then(closed);
    await settledTurns();
    expect(closed).not.toHaveBeenCalled();
    found();
    await closing;
    expect(codes(anna)).toEqual(['unknown_sale']);
  });

  it('takes no longer than the deadline of the last purchase', async () => {
    learn();
    buy();
    const closed = vi.fn();
    const closing = engine.close().then(closed);
    await elapse(LIVES_MS + 50);
    await closing;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('may be done twice, and while nothing is under way', async () => {
    learn();
    buy();
    const closing = Promise.all([engine.close(), engine.close(), engine.idle()]);
    await (await takes.next()).serve([{ kind: 'limit', orderIds: [] }]);
    await closing;
    await engine.close();
  });
});

describe('a buyer’s order', () => {
  it('is found in the sales that this worker knows', async () => {
    learn();
    listener.changed({ ...viewOf({ id: 'other' }), slot: -1 });
    remember(0, anOrder({ quantity: 2 }));
    expect(await engine.findOrder('anna', '900', 1_000)).toEqual({ saleId: 'sale', quantity: 2 });
    expect(await engine.findOrder('anna', '901', 1_000)).toBeUndefined();
  });

  it('is found although another sale’s records can’t be read; if no other sale has it, the search fails', async () => {
    const [sick, own] = ['sick', 'sale'];
    learn();
    listener.changed({ ...viewOf({ id: sick }), slot: -1 });
    const order = anOrder({ quantity: 2 });
    const holding = async (buyerIds: readonly string[]) => ({
      committed: 0,
      holdings: buyerIds.map((buyerId) => ({ buyerId, orders: [order] })),
    });
    recall = (buyerIds, saleId) =>
      saleId === own ? holding(buyerIds) : Promise.reject(new StaleGeneration(sick, 1));
    expect(await engine.findOrder('anna', order.orderId, 1_000)).toEqual({ saleId: own, quantity: 2 });
    await expect(engine.findOrder('anna', '901', 1_000)).rejects.toThrow(StaleGeneration);
  });

  it('is found although the record in another sale is not read in time', async () => {
    learn();
    listener.changed({ ...viewOf({ id: 'silent' }), slot: -1 });
    const order = anOrder();
    recall = async (buyerIds, saleId) => {
      if (saleId === 'silent') await new Promise(() => {});
      return { committed: 0, holdings: buyerIds.map((buyerId) => ({ buyerId, orders: [order] })) };
    };
    expect(await engine.findOrder('anna', order.orderId, 1_000)).toEqual({ saleId: 'sale', quantity: 1 });
  });

  it('is searched for in some records at a time, and in no more of them once it is found', async () => {
    const sales = 50;
    for (let i = 0; i < sales; i++) listener.changed({ ...viewOf({ id: `sale-${i}` }), slot: -1 });
    remember(0, anOrder());
    expect(await engine.findOrder('anna', '900', 1_000)).toEqual({ saleId: 'sale-0', quantity: 1 });
    await settledTurns();
    expect(recalls.length).toBeLessThan(sales / 2);
  });

  it('is not called missing while the records can’t be read: the search fails', async () => {
    learn();
    recall = async () => Promise.reject(new Error('away'));
    await expect(engine.findOrder('anna', '900', 1_000)).rejects.toThrow('away');
  });
});

describe('what a worker knows of a sale', () => {
  it('is its record, once it knows the sale', () => {
    expect(engine.knownRecord('sale')).toBeUndefined();
    learn();
    expect(engine.knownRecord('sale')).toBe(view.record);
    expect(engine.knownRecord('nothing')).toBeUndefined();
  });

  it('is a buyer’s record, for which it looks the sale up', async () => {
    remember(5, anOrder());
    expect(await engine.recordOf('sale', 'anna')).toEqual({ committed: 5, orders: [anOrder()] });
    expect(await engine.recordOf('nothing', 'anna')).toBeUndefined();
    expect(recalls).toEqual([['anna']]);
  });
});

describe('messages of a newer version', () => {
  it('that the backend can’t read are reported', async () => {
    const onForeign = vi.fn();
    await start({ durable: true }, { onForeign });
    const error = new BackendCorrupt('version 9');
    events.at(-1)!.foreign?.(error);
    expect(onForeign).toHaveBeenCalledExactlyOnceWith(error);
  });
});

describe('the promise of a purchase', () => {
  it('resolves with its outcome, also when the last unit decides', async () => {
    learn();
    const outcome = engine.purchase(aPurchase());
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 0 });
    expect(await outcome).toEqual({ code: 'sold_out' });
    expect(await engine.purchase(aPurchase())).toEqual({ code: 'sold_out' });
    expect(takes.asks).toHaveLength(2);
  });
});
