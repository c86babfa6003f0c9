/** What stockade_settle_late_payment and its form for operators decide and write. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openFunctions, type Row, type Rows, run } from '../../../support/postgres/run-function.ts';

let client: pg.Client;
beforeAll(async () => {
  client = await openFunctions();
});
afterAll(() => client.end());

const SALES: readonly Row[] = [{ id: 'a', stock: 10, live_orders: 7, generation: 4 }];
const order = (order_id: number, more: Row = {}): Row => ({
  ...{ order_id, sale_id: 'a', buyer_id: 'anna', one_per_buyer: false, ...more },
});
const LATE = { status: 'expired', expired_at: -5, expires_at: -6 };
const PAID = { status: 'paid', paid_at: -3, pay_type: 'card' };

interface Case {
  readonly what: string;
  /** Differences of the late order. */
  readonly late?: Row;
  /** The retake, 12; by default it is unpaid. `null`: none. */
  readonly taken?: Row | null;
  readonly verdict: string;
  /** The order that stands. */
  readonly stands: number;
  readonly written: object;
  readonly events?: readonly string[];
  /** The orders that an operator's decision is noted for. */
  readonly noted?: readonly number[];
}

const CANCELLED = {
  orders: { 12: { status: 'cancelled', cancelled_at: 0 } },
  sales: { a: { stock: 11, live_orders: 6, draft_since: 0 } },
  stock_returns: {
    12: {
      ...{ order_id: 12, sale_id: 'a', buyer_id: 'anna', units: 1, reason: 'cancelled', generation: 4 },
      ...{ created_at: 0, units_before: 0 },
    },
  },
};

const CASES: readonly Case[] = [
  {
    what: 'pays the retake',
    verdict: 'retaken',
    stands: 12,
    written: {
      orders: {
        11: { retaken_by: 12, pay_type: 'card' },
        12: { status: 'paid', paid_at: 0, pay_type: 'card' },
      },
    },
    events: ['paid 12'],
    noted: [11, 12],
  },
  ...[null, { ...PAID, pay_type: 'alipay' }, { ...PAID, status: 'redeemed', redeemed_at: -2 }].map(
    (taken): Case => ({
      what: `is to be refunded, if the retake is ${taken?.status ?? 'not possible'}`,
      taken,
      verdict: 'refund_due',
      stands: 11,
      written: { orders: { 11: { refund_due_at: 0, pay_type: 'card' } } },
      noted: [11],
    }),
  ),
  ...['cancelled', 'expired', 'refunded', 'rejected'].map(
    (status): Case => ({
      what: `decides nothing, if the retake is ${status}`,
      taken: { status },
      verdict: 'over',
      stands: 11,
      written: {},
    }),
  ),
  {
    what: 'was retaken: another retake is cancelled',
    late: { retaken_by: 13, pay_type: 'card' },
    verdict: 'retaken',
    stands: 13,
    written: CANCELLED,
    events: ['cancelled 12'],
  },
  {
    what: 'was retaken by a payment with another pay type: another retake is cancelled',
    late: { retaken_by: 13, pay_type: 'alipay' },
    verdict: 'wrong_status',
    stands: 11,
    written: CANCELLED,
    events: ['cancelled 12'],
  },
  {
    what: 'is to be refunded already: a retake is cancelled',
    late: { refund_due_at: -2, pay_type: 'card' },
    verdict: 'refund_due',
    stands: 11,
    written: CANCELLED,
    events: ['cancelled 12'],
  },
  {
    what: 'with another pay type is to be refunded already: a retake is cancelled',
    late: { refund_due_at: -2, pay_type: 'alipay' },
    verdict: 'wrong_status',
    stands: 11,
    written: CANCELLED,
    events: ['cancelled 12'],
  },
  {
    what: 'with another pay type was refunded, and there is no retake',
    late: { refund_due_at: -2, refunded_at: -1, pay_type: 'alipay' },
    taken: null,
    verdict: 'wrong_status',
    stands: 11,
    written: {},
  },
  ...[null, { ...PAID, pay_type: 'alipay' }].flatMap((taken): Case[] => [
    {
      what: `was retaken, and ${taken ? 'another retake is paid' : 'there is no other retake'}`,
      late: { retaken_by: 13, pay_type: 'card' },
      taken,
      verdict: 'retaken',
      stands: 13,
      written: {},
    },
    {
      what: `is to be refunded already, and ${taken ? 'a retake is paid' : 'there is no retake'}`,
      late: { refund_due_at: -2, pay_type: 'card' },
      taken,
      verdict: 'refund_due',
      stands: 11,
      written: {},
    },
  ]),
];

const given = ({ late, taken }: Case): Rows => ({
  sales: SALES,
  orders: [
    order(13, { ...PAID, buyer_id: 'ben' }),
    order(11, { ...LATE, ...late }),
    order(10, { buyer_id: 'ben' }),
    ...(taken === null ? [] : [order(12, taken)]),
  ],
});

describe('a late payment', () => {
  it.each(CASES)('$what', async (one) => {
    const { returned, written, events, orders } = await run(client, {
      given: given(one),
      sql: 'SELECT verdict, to_jsonb(stands) AS stands FROM stockade_settle_late_payment(11, $1, $2)',
      bindings: [one.taken === null ? null : 12, 'card'],
    });
    expect(written).toEqual(one.written);
    expect(events).toEqual(one.events ?? []);
    expect(returned).toEqual([{ verdict: one.verdict, stands: orders[one.stands] }]);
  });
});

describe('a late payment that an operator notes', () => {
  it.each(CASES)('$what', async (one) => {
    const { returned, written, events, orders } = await run(client, {
      given: given(one),
      sql: 'SELECT verdict, to_jsonb(stands) AS stands FROM stockade_settle_late_payment_by(11, $1, $2, $3, $4)',
      bindings: [one.taken === null ? null : 12, 'card', 'olga', 'he paid'],
    });
    const notes = (one.noted ?? []).map((order_id) => [
      `${order_id} pay`,
      { order_id, change: 'pay', actor: 'olga', reason: 'he paid', changed_at: 0 },
    ]);
    const noted = notes.length === 0 ? {} : { order_changes: Object.fromEntries(notes) };
    expect(written).toEqual({ ...one.written, ...noted });
    expect(events).toEqual(one.events ?? []);
    expect(returned).toEqual([{ verdict: one.verdict, stands: orders[one.stands] }]);
  });
});
