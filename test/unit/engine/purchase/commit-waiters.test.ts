import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Rejection } from '../../../../src/engine/contract.ts';
import { CommitWaiters } from '../../../../src/engine/purchase/commit-waiters.ts';
import type { LivePurchase } from '../../../../src/engine/purchase/purchase.ts';
import { aLivePurchase, codesOf, type ToldPurchase } from '../../../support/engine/purchases.ts';

const LIMIT = 2;
/** More than `CommitWaiters` remembers. */
const MANY_REJECTIONS = 12_000;
/** As many entries as `CommitWaiters` remembers. */
const MOST_ENTRIES = 256;

let waiters: CommitWaiters;
let nextId: number;

/** The purchases that must be checked, in order. */
let toCheck: LivePurchase[];

beforeEach(() => {
  toCheck = [];
  waiters = new CommitWaiters(() => LIMIT);
  nextId = 1001;
});

/** @param entry `''`: only the buyer's record knows it */
function taken(seq: number, { orderId = String(nextId++), entry = 'e', quantity = 1 } = {}): ToldPurchase {
  const purchase = aLivePurchase({ quantity });
  purchase.name(orderId);
  purchase.send();
  if (entry === '') purchase.find({ orderId, seq }, 1);
  else purchase.take(seq, entry, 1);
  return purchase;
}

function add(...purchases: LivePurchase[]): void {
  for (const purchase of purchases) if (waiters.add(purchase)) toCheck.push(purchase);
}

/** The buyer's record was read, and holds the order. */
function foundAgain(purchase: LivePurchase): void {
  purchase.find(purchase, 1);
  add(purchase);
}

function wait(...seqs: number[]): ToldPurchase[] {
  const purchases = seqs.map((seq) => taken(seq));
  add(...purchases);
  return purchases;
}

function advance(seq: number, ...rejected: Rejection[]): void {
  toCheck.push(...waiters.advance({ saleId: 'sale', segment: 0, generation: 1, seq, orders: seq, rejected }));
}

describe('a watermark', () => {
  it('settles all purchases up to its position, and none beyond', () => {
    const purchases = wait(1, 1, 2, 3);
    advance(2);
    expect(codesOf(purchases)).toEqual(['committed', 'committed', 'committed', 'waits']);
    advance(3);
    expect(codesOf(purchases)).toEqual(['committed', 'committed', 'committed', 'committed']);
  });

  it('tells the order and its quantity', () => {
    const purchase = taken(1, { orderId: '77', quantity: 2 });
    add(purchase);
    advance(1);
    expect(purchase.told).toEqual([{ code: 'committed', orderId: '77', quantity: 2 }]);
  });

  it('may come before the purchase', () => {
    advance(5);
    expect(codesOf(wait(4, 5, 6))).toEqual(['committed', 'committed', 'waits']);
  });

  it('also names its entries for replies that come after it, until no take is under way', () => {
    const named = {
      saleId: 'sale',
      segment: 0,
      generation: 1,
      seq: 5,
      orders: 5,
      rejected: [],
      tails: ['a'],
    };
    const reply = () => taken(5, { entry: 'a' });
    const [behind, later] = [reply(), reply()];
    waiters.advance(named);
    add(behind);
    waiters.forget();
    add(later);
    expect(codesOf([behind, later])).toEqual(['committed', 'waits']);
    expect(toCheck).toEqual([later]);
  });

  it('also names rejected orders for replies that come after it, until no take is under way', () => {
    advance(5, { orderId: '1001', reason: 'stock' }, { orderId: '1002', reason: 'stock' });
    const [behind] = wait(5);
    waiters.forget();
    const [later] = wait(5);
    expect(codesOf([behind!, later!])).toEqual(['sold_out', 'committed']);
  });

  it('may come twice, and late', () => {
    advance(5);
    advance(5);
    advance(2);
    const purchases = wait(5, 6);
    advance(4);
    expect(codesOf(purchases)).toEqual(['committed', 'waits']);
  });

  it('settles a repeated purchase whose order is in an older entry than those of the others', () => {
    const [first, second] = wait(1, 2);
    const [again] = wait(1);
    advance(1);
    expect(codesOf([first!, second!, again!])).toEqual(['committed', 'waits', 'committed']);
  });

  it('settles purchases of older entries, in whatever order they came', () => {
    const purchases = wait(5, 2, 4, 1, 3, 6);
    expect(waiters.size).toBe(6);
    advance(1);
    expect(codesOf(purchases)).toEqual(['waits', 'waits', 'waits', 'committed', 'waits', 'waits']);
    advance(4);
    expect(codesOf(purchases)).toEqual([
      'waits',
      'committed',
      'committed',
      'committed',
      'committed',
      'waits',
    ]);
    advance(6);
    expect(new Set(codesOf(purchases))).toEqual(new Set(['committed']));
    expect(waiters.size).toBe(0);
  });

  it('looks at no purchase beyond the next one, so that its cost does not grow with the queue', () => {
    const look = vi.fn(() => 2);
    for (const purchase of Array.from({ length: 50 }, () => taken(2)))
      add(Object.defineProperty(purchase, 'seq', { get: look }));
    look.mockClear();
    advance(1);
    expect(look.mock.calls.length).toBeLessThan(5);
  });

  it('skips purchases that were answered', () => {
    const purchases = wait(1, 1);
    purchases[0]!.giveUp();
    advance(1);
    expect(codesOf(purchases)).toEqual(['unknown', 'committed']);
  });
});

describe('an order that the watermark rejects', () => {
  it.each<[Rejection['reason'], object]>([
    ['stock', { code: 'sold_out' }],
    ['limit', { code: 'limit_reached', limit: LIMIT, orderIds: [] }],
    ['duplicate', { code: 'unknown' }],
  ])('for the %s is answered with that, and the others of its entry are committed', (reason, outcome) => {
    const purchases = wait(1, 1, 1);
    advance(1, { orderId: purchases[1]!.orderId, reason });
    expect(purchases[1]!.told).toEqual([outcome]);
    expect(codesOf([purchases[0]!, purchases[2]!])).toEqual(['committed', 'committed']);
  });

  it('is remembered until the reply to its take', () => {
    advance(1, { orderId: '77', reason: 'stock' });
    const late = taken(1, { orderId: '77' });
    add(late);
    expect(codesOf([late])).toEqual(['sold_out']);
  });

  it('may be named by a watermark that is not newer', () => {
    advance(3);
    advance(3, { orderId: '77', reason: 'stock' });
    const late = taken(3, { orderId: '77' });
    add(late);
    expect(codesOf([late])).toEqual(['sold_out']);
  });

  it('is answered with that, however many were rejected before', () => {
    for (let seq = 1; seq <= MANY_REJECTIONS; seq++) {
      advance(seq, { orderId: `old-${seq}`, reason: 'stock' });
    }
    const seq = MANY_REJECTIONS + 1;
    const [purchase] = wait(seq);
    advance(seq, { orderId: purchase!.orderId, reason: 'stock' });
    expect(codesOf([purchase!])).toEqual(['sold_out']);
  });

  it('is answered with that if one watermark rejects very many', () => {
    const purchases = wait(...Array.from({ length: MANY_REJECTIONS }, () => 1));
    advance(1, ...purchases.map(({ orderId }) => ({ orderId, reason: 'stock' as const })));
    expect(new Set(codesOf(purchases))).toEqual(new Set(['sold_out']));
  });
});

describe('a watermark that names its entries', () => {
  function name(seq: number, tails: string[], ...rejected: Rejection[]): void {
    const watermark = { saleId: 'sale', segment: 0, generation: 1, seq, orders: seq, rejected, tails };
    toCheck.push(...waiters.advance(watermark));
  }

  const inEntry = (seq: number, entry: string, orderId?: string) =>
    taken(seq, orderId === undefined ? { entry } : { entry, orderId });

  it('settles purchases of the entries that it names', () => {
    const purchases = [inEntry(1, 'a'), inEntry(2, 'b'), inEntry(2, 'b'), inEntry(3, 'c')];
    add(...purchases);
    name(2, ['a', 'b']);
    expect(codesOf(purchases)).toEqual(['committed', 'committed', 'committed', 'waits']);
    name(3, ['c']);
    expect(codesOf(purchases).at(-1)).toBe('committed');
    expect(toCheck).toEqual([]);
  });

  it('may come before the purchase', () => {
    name(5, ['d', 'e']);
    const purchases = [inEntry(4, 'd'), inEntry(5, 'e')];
    add(...purchases);
    expect(codesOf(purchases)).toEqual(['committed', 'committed']);
  });

  it('has a purchase checked if it gives the number of its entry to another entry, before or after the purchase comes', () => {
    const before = inEntry(2, 'mine');
    add(before);
    name(2, ['a', 'b']);
    const after = inEntry(1, 'mine too');
    add(after);
    expect(codesOf([before, after])).toEqual(['waits', 'waits']);
    expect(toCheck).toEqual([before, after]);
  });

  it('makes purchases below it be checked if the message with their entry got lost', () => {
    const [lost, named] = [inEntry(1, 'a'), inEntry(2, 'b')];
    add(lost);
    add(named);
    name(2, ['b']);
    expect(codesOf([lost, named])).toEqual(['waits', 'committed']);
    expect(toCheck).toEqual([lost]);
  });

  it('has a repeated purchase checked once when it passes its entry, and not again when the record still has the order', () => {
    const repeated = inEntry(2, '');
    add(repeated);
    name(2, ['a', 'b']);
    expect(toCheck).toEqual([repeated]);
    foundAgain(repeated);
    expect(toCheck).toEqual([repeated]);
    expect(waiters.size).toBe(1);
    expect(waiters.drain()).toEqual([repeated]);
  });

  it('has the record read exactly once more if it came before the record that names the order', () => {
    name(5, ['a']);
    const replayed = taken(5, { entry: '' });
    add(replayed);
    expect(toCheck).toEqual([replayed]);
    foundAgain(replayed);
    expect(toCheck).toEqual([replayed]);
    expect(waiters.drain()).toEqual([replayed]);
  });

  it('settles a rejected purchase by the order alone', () => {
    const purchase = inEntry(1, 'mine', '77');
    add(purchase);
    name(1, ['a'], { orderId: '77', reason: 'stock' });
    expect(codesOf([purchase])).toEqual(['sold_out']);
  });

  it('settles a repeated purchase that it rejects, without another look at the record', () => {
    name(5, ['a'], { orderId: '77', reason: 'stock' });
    const repeated = taken(5, { entry: '', orderId: '77' });
    add(repeated);
    expect(codesOf([repeated])).toEqual(['sold_out']);
    expect(toCheck).toEqual([]);
  });

  it('has no purchase checked that was answered already, whether it comes before or after it', () => {
    const [before, after] = [inEntry(1, 'mine'), inEntry(1, 'mine too')];
    add(before);
    before.giveUp();
    name(1, ['a']);
    after.giveUp();
    add(after);
    expect(toCheck).toEqual([]);
  });

  it('names its entries for late replies up to a bound: beyond it, their records are read', () => {
    const tails = Array.from({ length: MOST_ENTRIES }, (_, i) => `entry-${i + 1}`);
    name(MOST_ENTRIES, tails);
    const remembered = inEntry(1, 'entry-1');
    add(remembered);
    name(MOST_ENTRIES + 1, ['one more']);
    const forgotten = inEntry(1, 'entry-1');
    add(forgotten);
    expect(codesOf([remembered, forgotten])).toEqual(['committed', 'waits']);
    expect(toCheck).toEqual([forgotten]);
  });

  it('may name more entries than are remembered', () => {
    const tails = Array.from({ length: 2_000 }, (_, i) => `entry-${i + 1}`);
    const purchases = tails.map((tail, i) => inEntry(i + 1, tail));
    add(...purchases);
    name(2_000, tails);
    expect(new Set(codesOf(purchases))).toEqual(new Set(['committed']));
  });
});

describe('when the sale was rebuilt', () => {
  it('purchases that still wait are handed back', () => {
    const [settled, ...others] = wait(1, 9, 3);
    advance(1);
    others[0]!.accept();
    expect(waiters.drain()).toEqual(others.slice(1));
    expect(waiters.size).toBe(0);
    expect(codesOf([settled!])).toEqual(['committed']);
  });
});

describe('while nothing is committed', () => {
  const expire = (purchase: ToldPurchase) => purchase.expire(true);

  it.each([
    ['purchases', (round: number) => round],
    ['repetitions of an old purchase', () => 1],
  ])('%s that were answered at their deadlines are forgotten', (_, seqOf) => {
    wait(2).forEach(expire);
    for (let round = 3; round <= 1_000; round++) wait(seqOf(round)).forEach(expire);
    expect(waiters.size).toBeLessThan(10);
  });
});
