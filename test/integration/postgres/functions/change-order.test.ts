/** What stockade_change_order and its form for operators answer and write, for each status and each change. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openFunctions, type Row, type Rows, type Run, run } from '../../../support/postgres/run-function.ts';

let client: pg.Client;
beforeAll(async () => {
  client = await openFunctions();
});
afterAll(() => client.end());

const CHANGES = ['pay', 'cancel', 'redeem', 'refund'] as const;
type Change = (typeof CHANGES)[number];

const SALES: readonly Row[] = [
  { id: 'deleting', deleting_since: -1, live_orders: 3 },
  { id: 'a', stock: 10, live_orders: 7, generation: 4 },
];
const OTHER: Row = { order_id: 12, sale_id: 'a', buyer_id: 'ben', expires_at: -1 };
const PAID: Row = { status: 'paid', paid_at: -9, pay_type: 'card' };
const ENDED: Row = { expires_at: -20 };

/** By what an order is: the columns that say so. */
const ORDERS: Readonly<Record<string, Row>> = {
  unpaid: { expires_at: 1 },
  'unpaid for ever': {},
  'due now': { expires_at: 0 },
  overdue: { expires_at: -1 },
  paid: { ...PAID, ...ENDED },
  redeemed: { ...PAID, ...ENDED, status: 'redeemed', redeemed_at: -8 },
  cancelled: { ...ENDED, status: 'cancelled', cancelled_at: -7 },
  refunded: { ...PAID, ...ENDED, status: 'refunded', refunded_at: -6 },
  expired: { ...ENDED, status: 'expired', expired_at: -5 },
  rejected: { ...ENDED, status: 'rejected' },
  retaken: { ...ENDED, status: 'expired', expired_at: -5, retaken_by: 12, pay_type: 'card' },
  'due a refund': { ...ENDED, status: 'expired', expired_at: -5, refund_due_at: -4, pay_type: 'card' },
  'late and refunded': {
    ...{ ...ENDED, status: 'expired', expired_at: -5, refund_due_at: -4, refunded_at: -3, pay_type: 'card' },
  },
  'an offer': { offer_of: 3, expires_at: 1 },
  'an offer that is overdue': { offer_of: 3, expires_at: -1 },
  'an offer that was cancelled': { ...ENDED, offer_of: 3, status: 'cancelled', cancelled_at: -7 },
};

/** What the function answers: the verdict, and whether it makes the change, or lets the order expire, or neither. */
type Answer = readonly [verdict: string, does: 'change' | 'expire' | 'nothing'];
const MADE: Answer = ['done', 'change'];
const KNOWN: Answer = ['done', 'nothing'];
const WRONG: Answer = ['wrong_status', 'nothing'];
const LATE: Answer = ['late', 'nothing'];

/** By what an order is: pay, cancel, redeem, refund. */
const ANSWERS: Readonly<Record<string, readonly [Answer, Answer, Answer, Answer]>> = {
  unpaid: [MADE, MADE, WRONG, WRONG],
  'unpaid for ever': [MADE, MADE, WRONG, WRONG],
  'due now': [['late', 'expire'], MADE, WRONG, WRONG],
  overdue: [['late', 'expire'], MADE, WRONG, WRONG],
  paid: [KNOWN, WRONG, MADE, MADE],
  redeemed: [KNOWN, WRONG, KNOWN, WRONG],
  cancelled: [WRONG, KNOWN, WRONG, WRONG],
  refunded: [KNOWN, WRONG, WRONG, KNOWN],
  expired: [LATE, WRONG, WRONG, WRONG],
  rejected: [WRONG, WRONG, WRONG, WRONG],
  retaken: [['retaken', 'nothing'], WRONG, WRONG, WRONG],
  'due a refund': [['refund_due', 'nothing'], WRONG, WRONG, MADE],
  'late and refunded': [['refund_due', 'nothing'], WRONG, WRONG, KNOWN],
  'an offer': [WRONG, MADE, WRONG, WRONG],
  'an offer that is overdue': [WRONG, MADE, WRONG, WRONG],
  'an offer that was cancelled': [WRONG, KNOWN, WRONG, WRONG],
};

const given = (what: string, more: Row = {}): Rows => ({
  sales: SALES,
  orders: [OTHER, { order_id: 11, sale_id: 'a', buyer_id: 'anna', quantity: 2, ...ORDERS[what], ...more }],
});

function change(rows: Rows, kind: Change, askedBy: string | null = 'anna', payType = 'card'): Promise<Run> {
  return run(client, {
    given: rows,
    sql: 'SELECT verdict, to_jsonb(stands) AS stands FROM stockade_change_order(11, $1, $2, $3)',
    bindings: [kind, kind === 'pay' ? payType : null, askedBy],
  });
}

const PAST = { pay: 'paid', cancel: 'cancelled', redeem: 'redeemed', refund: 'refunded' } as const;

/** What is written when a change is made. */
function writtenBy(kind: Change | 'expire', what: string): [written: object, event: string] {
  const status = kind === 'expire' ? 'expired' : PAST[kind];
  if (kind === 'pay') return [{ orders: { 11: { status, paid_at: 0, pay_type: 'card' } } }, 'paid 11'];
  if (kind === 'redeem') return [{ orders: { 11: { status, redeemed_at: 0 } } }, 'redeemed 11'];
  if (what === 'due a refund') return [{ orders: { 11: { refunded_at: 0 } } }, 'refunded 11'];
  const back = { order_id: 11, sale_id: 'a', buyer_id: 'anna', units: 2, reason: status, generation: 4 };
  return [
    {
      orders: { 11: { status, [`${status}_at`]: 0 } },
      sales: { a: { stock: 12, live_orders: 6, draft_since: 0 } },
      stock_returns: { 11: { ...back, created_at: 0, units_before: 0 } },
    },
    `${what.startsWith('an offer') ? 'declined' : status} 11`,
  ];
}

const MATRIX = Object.entries(ANSWERS).flatMap(([what, answers]) =>
  answers.map((answer, i) => [CHANGES[i]!, what, ...answer] as const),
);

describe('a change of an order', () => {
  it.each(MATRIX)(
    '%s, of one that is %s, is answered %s, and makes: %s',
    async (kind, what, verdict, does) => {
      const [changes, event] =
        does === 'nothing' ? [{}, undefined] : writtenBy(does === 'change' ? kind : does, what);
      for (const askedBy of ['anna', null]) {
        const { returned, written, events, orders } = await change(given(what), kind, askedBy);
        expect(written).toEqual(changes);
        expect(events).toEqual(event === undefined ? [] : [event]);
        expect(returned).toEqual([{ verdict, stands: orders[verdict === 'retaken' ? 12 : 11] }]);
      }
    },
  );

  it('other than a payment has no use for a pay type', async () => {
    for (const [kind, what, verdict] of MATRIX.filter(([kind]) => kind !== 'pay')) {
      const sql = 'SELECT verdict FROM stockade_change_order(11, $1, $2, $3)';
      const { returned } = await run(client, { given: given(what), sql, bindings: [kind, 'card', 'anna'] });
      expect([kind, what, returned]).toEqual([kind, what, [{ verdict }]]);
    }
  });

  it.each(Object.keys(ORDERS))('of another buyer is forbidden, if it is %s', async (what) => {
    for (const kind of CHANGES) {
      const { returned, written, events, orders } = await change(given(what), kind, 'ben');
      expect([written, events, returned]).toEqual([{}, [], [{ verdict: 'forbidden', stands: orders[11] }]]);
    }
  });

  it.each([
    ['paid', 'wrong_status'],
    ['redeemed', 'wrong_status'],
    ['refunded', 'wrong_status'],
    ['retaken', 'wrong_status'],
    ['due a refund', 'wrong_status'],
    ['late and refunded', 'wrong_status'],
  ])('pays, with another pay type, one that is %s: %s', async (what, verdict) => {
    const { returned, written, orders } = await change(given(what), 'pay', 'anna', 'alipay');
    expect([written, returned]).toEqual([{}, [{ verdict, stands: orders[11] }]]);
  });

  it('that is not there, or whose sale is being deleted, is answered with nothing', async () => {
    const rows = given('unpaid', { sale_id: 'deleting' });
    for (const some of [rows, { sales: SALES, orders: [OTHER] }]) {
      const { returned, written, events } = await change(some, 'pay');
      expect([returned, written, events]).toEqual([[], {}, []]);
    }
  });
});

describe('a change by an operator', () => {
  const changeBy = (rows: Rows, kind: Change) =>
    run(client, {
      given: rows,
      sql: 'SELECT verdict, to_jsonb(stands) AS stands FROM stockade_change_order_by(11, $1, $2, $3, $4)',
      bindings: [kind, kind === 'pay' ? 'card' : null, 'olga', 'she asked'],
    });
  const note = (kind: Change) => ({
    order_changes: {
      [`11 ${kind}`]: { order_id: 11, change: kind, actor: 'olga', reason: 'she asked', changed_at: 0 },
    },
  });

  it.each(MATRIX)(
    '%s, of one that is %s, is answered %s, and noted if it is made: %s',
    async (kind, what, verdict, does) => {
      const { returned, written, events, orders } = await changeBy(given(what), kind);
      const [changes, event] =
        does === 'nothing' ? [{}, undefined] : writtenBy(does === 'change' ? kind : does, what);
      expect(written).toEqual({ ...changes, ...(does === 'change' && note(kind)) });
      expect(events).toEqual(event === undefined ? [] : [event]);
      expect(returned).toEqual([{ verdict, stands: orders[verdict === 'retaken' ? 12 : 11] }]);
    },
  );

  it('of an order that is not there is answered with nothing', async () => {
    const { returned, written } = await changeBy({ sales: SALES, orders: [OTHER] }, 'pay');
    expect([returned, written]).toEqual([[], {}]);
  });
});
