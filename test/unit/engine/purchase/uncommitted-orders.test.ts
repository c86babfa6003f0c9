import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ID_PATTERN, MAX_PER_BUYER_LIMIT } from '../../../../src/engine/limits.ts';
import { UncommittedOrders } from '../../../../src/engine/purchase/uncommitted-orders.ts';
import { seed } from '../../../support/fixtures.ts';

const place = { saleId: 'tickets', segment: 3, generation: 1 };
const orders = (...ids: string[]) =>
  ids.map((orderId) => ({ orderId, buyerId: `buyer-of-${orderId}`, quantity: 2 }));
const watermark = (seq: number, tails?: string[]) => ({
  ...place,
  ...{ seq, orders: seq, rejected: [] },
  ...(tails && { tails }),
});
const idsOf = (taken: UncommittedOrders) => taken.drain().map(({ orderId }) => orderId);

it('forgets orders whose entries a watermark names, and no later ones', () => {
  const taken = new UncommittedOrders(3);
  taken.add(1, 'a', orders('a', 'a2'));
  taken.add(2, 'b', orders('b'));
  taken.add(3, 'c', orders('c', 'c2'));
  taken.advance(watermark(2, ['a', 'b']));
  expect(taken.drain()).toEqual([
    { segment: 3, orderId: 'c', buyerId: 'buyer-of-c', quantity: 2 },
    { segment: 3, orderId: 'c2', buyerId: 'buyer-of-c2', quantity: 2 },
  ]);
  expect(taken.drain()).toEqual([]);
});

it('keeps an entry whose watermark got lost; reports an entry whose number belongs to another one now', () => {
  const taken = new UncommittedOrders(3);
  for (const [i, tail] of ['a', 'b', 'c'].entries()) taken.add(i + 1, tail, orders(tail));
  const replaced = taken.advance(watermark(3, ['other', 'c']));
  expect(replaced.map(({ orderId }) => orderId)).toEqual(['b']);
  expect(idsOf(taken)).toEqual(['a']);
});

it('keeps an order that was found in its record: the name of its entry is not known', () => {
  const taken = new UncommittedOrders(3);
  taken.add(1, '', orders('again'));
  taken.advance(watermark(1, ['a']));
  expect(idsOf(taken)).toEqual(['again']);
});

it('relies on the number where nothing can be lost', () => {
  const taken = new UncommittedOrders(3);
  taken.add(1, 'a', orders('a'));
  taken.add(2, 'b', orders('b'));
  taken.advance(watermark(1));
  expect(idsOf(taken)).toEqual(['b']);
});

it('remembers 10,000 orders, and first drops those that no watermark will name any more', () => {
  const taken = new UncommittedOrders(3);
  taken.add(1, 'unnamed', orders('unnamed', 'unnamed-2'));
  taken.advance(watermark(1, []));
  for (let seq = 2; seq <= 5_001; seq++) taken.add(seq, `${seq}-1`, orders(`${seq}-1`, `${seq}-2`));
  const ids = idsOf(taken);
  expect(ids).toHaveLength(10_000);
  expect(ids[0]).toBe('2-1');
});

it('has room again when a watermark has named its orders', () => {
  const taken = new UncommittedOrders(3);
  const many = Array.from({ length: 9_999 }, (_, i) => `${i}`);
  taken.add(1, '0', orders(...many));
  taken.advance(watermark(1, ['0']));
  taken.add(2, '0', orders(...many));
  expect(idsOf(taken)).toHaveLength(9_999);
});

/** Compares the packed orders with plain lists: ids of all allowed characters, watermarks in any order. */
it('returns what was added, whatever the ids are and the watermarks name', () => {
  const order = fc.record({
    orderId: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String),
    buyerId: fc.stringMatching(ID_PATTERN),
    quantity: fc.integer({ min: 1, max: MAX_PER_BUYER_LIMIT }),
  });
  const entry = fc.tuple(fc.array(order, { minLength: 1, maxLength: 5 }), fc.boolean());
  const mark = fc.record({
    seq: fc.nat(12),
    told: fc.option(fc.nat(4), { nil: undefined }),
    named: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
  });
  const property = fc.property(fc.array(entry, { maxLength: 10 }), fc.array(mark), (entries, marks) => {
    const taken = new UncommittedOrders(3);
    let waiting = entries.map(([held, isNamed], i) => ({
      seq: i + 1,
      tail: isNamed ? `t${i + 1}` : '',
      held,
    }));
    let unnamed: typeof waiting = [];
    for (const { seq, tail, held } of waiting) taken.add(seq, tail, held);
    for (const { seq, told, named } of marks) {
      const first = seq - (told ?? 0) + 1;
      const tails =
        told === undefined
          ? undefined
          : Array.from({ length: told }, (_, i) => (named[i] ? `t${first + i}` : 'other'));
      const passed = waiting.filter((one) => one.seq <= seq);
      const isOpen = (one: (typeof waiting)[0]) =>
        tails !== undefined && (one.seq < first || one.tail === '');
      const isReplaced = (one: (typeof waiting)[0]) =>
        tails !== undefined && !isOpen(one) && tails[one.seq - first] !== one.tail;
      const replaced = passed.filter(isReplaced).flatMap(({ held }) => held);
      expect(taken.advance(watermark(seq, tails))).toEqual(replaced.map((one) => ({ segment: 3, ...one })));
      unnamed = [...unnamed, ...passed.filter(isOpen)];
      waiting = waiting.filter((one) => one.seq > seq);
    }
    const left = [...unnamed, ...waiting].flatMap(({ held }) => held);
    expect(taken.drain()).toEqual(left.map((one) => ({ segment: 3, ...one })));
  });
  fc.assert(property, { seed: seed(), numRuns: 200 });
});
