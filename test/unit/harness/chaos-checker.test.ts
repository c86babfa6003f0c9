/** The checker of `npm run chaos` finds what it is there to find. */
import { describe, expect, test } from 'vitest';
import { judge, type Order, type Truth } from '../../chaos/checker.ts';
import { type Answer, History, type Purchase } from '../../chaos/history.ts';
import { progressText } from '../../chaos/report.ts';
import { SCHEDULES } from '../../chaos/schedules.ts';

const SALE = { stock: 3, limit: 2, soldOut: true };
const COMMITTED: Answer = { kind: 'ok', status: 201, orderId: '1' };
const ACCEPTED: Answer = { kind: 'ok', status: 202, orderId: '1' };
const UNKNOWN: Answer = { kind: 'unknown' };
const refused = (code: string, final: boolean): Answer => ({ kind: 'refused', code, final });

function purchase(answer: Answer, more: Partial<Purchase> = {}): Purchase {
  const asked = { buyerId: 'anna', key: 'key-1', quantity: 1, hurried: false };
  return { ...asked, attempts: 1, unknowns: answer.kind === 'unknown' ? 1 : 0, answer, ...more };
}

const order = (more: Partial<Order> = {}): Order => ({
  ...{ orderId: '1', buyerId: 'anna', quantity: 1, status: 'unpaid', key: 'key-1' },
  ...more,
});

function judged(purchases: Purchase[], orders: Order[], more: Partial<Truth> = {}, sale = SALE) {
  const history = new History();
  history.purchases.push(...purchases);
  const {
    sold: _,
    unsold: __,
    ...verdict
  } = judge(history, { orders, named: new Set(), countedLost: 0, ...more }, sale);
  return Object.fromEntries(Object.entries(verdict).filter(([, count]) => count > 0));
}

describe('nothing is found', () => {
  test.each<[string, Purchase[], Order[]]>([
    ['201 that is kept', [purchase(COMMITTED)], [order()]],
    ['202 that is kept, paid since', [purchase(ACCEPTED)], [order({ status: 'paid' })]],
    ['a refusal without an order', [purchase(refused('sold_out', true))], []],
    ['settled as refused', [purchase(refused('sold_out', true), { unknowns: 2 })], []],
    ['unavailable from the first', [purchase(refused('unavailable', false))], []],
  ])('%s', (_, purchases, orders) => expect(judged(purchases, orders)).toEqual({}));
});

describe('is found', () => {
  test.each<[string, Purchase[], Order[], Record<string, number>]>([
    ['a 201 that is gone', [purchase(COMMITTED)], [], { lostCommitted: 1 }],
    [
      'a 201 that was rejected',
      [purchase(COMMITTED)],
      [order({ status: 'rejected' })],
      { lostCommitted: 1, rejected: 1 },
    ],
    ["a 201 for another's order", [purchase(COMMITTED)], [order({ buyerId: 'ben' })], { lostCommitted: 1 }],
    ['a 201 of another quantity', [purchase(COMMITTED)], [order({ quantity: 2 })], { lostCommitted: 1 }],
    ['a 202 that is gone', [purchase(ACCEPTED)], [], { lostAccepted: 1, unreported: 1 }],
    [
      'a 202 that was rejected, which is a report',
      [purchase(ACCEPTED)],
      [order({ status: 'rejected' })],
      { lostAccepted: 1, rejected: 1 },
    ],
    ['one who still does not know', [purchase(UNKNOWN)], [], { unsettled: 1 }],
    [
      'one that was answered unavailable after an unknown outcome',
      [purchase(refused('unavailable', false), { unknowns: 1 })],
      [],
      { unsettled: 1 },
    ],
    [
      'one who was settled as refused, and has an order',
      [purchase(refused('sold_out', true), { unknowns: 1 })],
      [order()],
      { unsettled: 1 },
    ],
    [
      'one who was refused, and has an order',
      [purchase(refused('busy', false))],
      [order()],
      { falseRefusals: 1 },
    ],
    ['an order that nobody asked for', [], [order()], { invented: 1 }],
    [
      'a buyer above the limit',
      [purchase(COMMITTED), purchase({ ...COMMITTED, orderId: '2' }, { key: 'key-2', quantity: 2 })],
      [order(), order({ orderId: '2', key: 'key-2', quantity: 2 })],
      { limitBroken: 1 },
    ],
  ])('%s', (_, purchases, orders, found) => expect(judged(purchases, orders)).toEqual(found));

  test('a lost 202 whose order is named', () =>
    expect(judged([purchase(ACCEPTED)], [], { named: new Set(['1']) })).toEqual({ lostAccepted: 1 }));

  test('units sold beyond the stock, and units left over', () => {
    const orders = ['1', '2'].map((orderId) => order({ orderId, key: orderId, buyerId: orderId }));
    const truth = { orders, named: new Set<string>(), countedLost: 0 };
    const verdict = (stock: number, soldOut: boolean) =>
      judge(new History(), truth, { stock, limit: 2, soldOut });
    expect(verdict(1, true)).toMatchObject({ sold: 2, oversold: 1, unsold: 0 });
    expect(verdict(3, true)).toMatchObject({ sold: 2, oversold: 0, unsold: 1 });
    expect(verdict(3, false)).toMatchObject({ sold: 2, oversold: 0, unsold: 0 });
  });
});

test('the progress names each figure, and the schedules that could not run', () => {
  const row = { schedule: SCHEDULES[0]!, missing: undefined, rounds: [], broken: [] };
  expect(progressText(row)).toMatch(/^strikes: 0; sold: 0 of 0; 201: 0; 202: 0; .*; recovered s: 0\.0$/);
  expect(progressText({ ...row, missing: 'no replica' })).toBe('not run: no replica');
});
