/** Two calls at once of the functions in Postgres: the second waits for the first, and judges what it has left. */
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freshDatabase, until } from '../../../support/fixtures.ts';
import { asAdmin } from '../../../support/postgres/least-rights.ts';
import { insert, type Row, type Rows } from '../../../support/postgres/run-function.ts';

const sessions: pg.Client[] = [];
beforeAll(async () => {
  const connectionString = asAdmin(await freshDatabase());
  for (let i = 0; i < 2; i++) {
    const session = new pg.Client({ connectionString });
    await session.connect();
    sessions.push(session);
  }
});
afterAll(() => Promise.all(sessions.map((session) => session.end())));

const SALES: readonly Row[] = [
  { id: 'a', stock: 10, live_orders: 7, pay_within_seconds: 60, queue: 'fifo', max_waiting: 100 },
];
const order = (order_id: number, more: Row = {}): Row => ({
  ...{ order_id, sale_id: 'a', buyer_id: `buyer ${order_id}`, expires_at: 60, ...more },
});
const place = (number: number, more: Row = {}): Row => ({ sale_id: 'a', number, buyer_id: 'anna', ...more });

beforeEach(async () => {
  for (const session of sessions) await session.query('ROLLBACK');
  await sessions[0]!.query(
    'TRUNCATE orders, places, queues, order_events, order_changes, stock_returns, segment_cursors, sales CASCADE',
  );
});

const begin = async (given: Rows) => {
  const [first, second] = sessions as [pg.Client, pg.Client];
  await insert(first, { sales: SALES, ...given });
  return { first, second };
};

interface Started {
  readonly answer: Promise<readonly Row[]>;
  /** Resolves when the call has ended, or waits for a lock. */
  readonly settled: Promise<boolean>;
}

/** Starts a call that may have to wait. */
async function start(session: pg.Client, sql: string, watch: pg.Client): Promise<Started> {
  const { rows } = await session.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  let ended = false;
  const answer = session
    .query<Row>(sql)
    .then((result) => result.rows)
    .finally(() => {
      ended = true;
    });
  answer.catch(() => {});
  const waits = async () =>
    ended ||
    (await watch.query('SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted', [rows[0]!.pid])).rows.length >
      0;
  return { answer, settled: until(waits, { what: 'the call ends or waits' }).then(() => true) };
}

/** Runs a call while another transaction, which began before it, has not ended. @returns what it answers */
async function during(given: Rows, earlier: string, call: string): Promise<readonly Row[]> {
  const { first, second } = await begin(given);
  await first.query('BEGIN');
  await first.query(earlier);
  const { answer, settled } = await start(second, call, first);
  await settled;
  await first.query('COMMIT');
  return answer;
}

const all = async (sql: string) => (await sessions[0]!.query<Row>(sql)).rows;

const PAY = "UPDATE orders SET status = 'paid', paid_at = now(), pay_type = 'card' WHERE order_id = 11";

describe('a call that comes second', () => {
  it('does not cancel an order that is paid meanwhile', async () => {
    const answer = await during(
      { orders: [order(11)] },
      PAY,
      "SELECT verdict FROM stockade_change_order(11, 'cancel', NULL, NULL)",
    );
    expect(answer).toEqual([{ verdict: 'wrong_status' }]);
    expect(await all('SELECT status FROM orders')).toEqual([{ status: 'paid' }]);
  });

  it('is not noted as an operator’s payment if the buyer pays meanwhile', async () => {
    const call = "SELECT verdict FROM stockade_change_order_by(11, 'pay', 'card', 'olga', 'asked')";
    expect(await during({ orders: [order(11)] }, PAY, call)).toEqual([{ verdict: 'done' }]);
    expect(await all('SELECT * FROM order_changes')).toEqual([]);
  });

  it('does not accept an offer that ends meanwhile', async () => {
    const given = {
      orders: [order(11, { offer_of: 3 })],
      places: [place(3, { state: 'offered', order_id: 11 })],
    };
    const end = "SELECT stockade_give_back(ARRAY[11::bigint], 'expired')";
    const call = "SELECT verdict FROM stockade_accept_offer(11, 'buyer 11', 1, NULL, NULL)";
    expect(await during(given, end, call)).toEqual([{ verdict: 'late' }]);
    expect(await all('SELECT state FROM places')).toEqual([{ state: 'lapsed' }]);
  });

  it('gives the next places', async () => {
    const queues = [{ sale_id: 'a', last_number: 7, seed: Buffer.alloc(32), salt_key: Buffer.alloc(32) }];
    const give = (buyer: string) =>
      `SELECT number::integer FROM stockade_give_places('a', '{${buyer}}', '{1}')`;
    expect(await during({ queues }, give('anna'), give('ben'))).toEqual([{ number: 9 }]);
    expect(await all('SELECT last_number::integer AS last FROM queues')).toEqual([{ last: 9 }]);
  });

  it('expires the orders that nobody is changing, without waiting for the others', async () => {
    const orders = [order(11, { expires_at: -5 }), order(12, { expires_at: -4 })];
    const call = "SELECT order_ids, locked_ids FROM stockade_expire_orders(9, '{}')";
    expect(await during({ orders }, PAY, call)).toEqual([{ order_ids: ['12'], locked_ids: [] }]);
    expect(await all('SELECT status FROM orders ORDER BY order_id')).toEqual([
      { status: 'paid' },
      { status: 'expired' },
    ]);
  });

  it('gives the event of a change a later time than those of all changes before it, whichever began first', async () => {
    const { first, second } = await begin({ orders: [order(11)] });
    await second.query('BEGIN');
    await second.query('SELECT now()');
    await first.query("SELECT stockade_change_order(11, 'pay', 'card', NULL)");
    await second.query("SELECT stockade_change_order(11, 'refund', NULL, NULL)");
    await second.query('COMMIT');
    expect(
      await all(
        'SELECT kind, happened_at > lag(happened_at) OVER (ORDER BY id) AS later FROM order_events ORDER BY id',
      ),
    ).toEqual([
      { kind: 'paid', later: null },
      { kind: 'refunded', later: true },
    ]);
  });

  describe('the expiry beside a sale that somebody changes', () => {
    const LOCK = "SELECT 1 FROM sales WHERE id = 'a' FOR UPDATE";
    const PAGE = "SELECT order_ids, locked_ids, locked_sales FROM stockade_expire_orders(9, '{}')";
    const orders = [order(11, { expires_at: -5 }), order(12, { expires_at: -4, offer_of: 3 })];

    it('returns its orders without waiting', async () => {
      const { first, second } = await begin({ orders });
      await first.query('BEGIN');
      await first.query(LOCK);
      const locked = { order_ids: [], locked_ids: ['11', '12'], locked_sales: ['a', 'a'] };
      expect((await second.query(PAGE)).rows).toEqual([locked]);
      const given = (waitMs: number) => second.query(`SELECT stockade_expire_given('{11}', 'a', ${waitMs})`);
      await expect(given(1)).rejects.toMatchObject({ code: '55P03' });
      await first.query('COMMIT');
      expect((await second.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '0' }]);
    });

    it.each([
      ['paused', "state = 'paused'", ['11']],
      ['deleted', 'deleting_since = now()', []],
    ])('waits for it, and keeps what may not expire in a sale that is %s', async (_, change, expired) => {
      const given = "SELECT order_ids FROM stockade_expire_given('{11,12}', 'a', 60000)";
      const answer = await during({ orders }, `UPDATE sales SET ${change}`, given);
      expect(answer).toEqual([{ order_ids: expired }]);
    });
  });
});

describe('a buyer who leaves', () => {
  const LEAVE = "SELECT (place).state, returned::integer FROM stockade_leave_queue('a', 'anna')";

  it('gives an offer back that is made meanwhile', async () => {
    const given = { orders: [order(11, { offer_of: 3 })], places: [place(3)] };
    const offer = "UPDATE places SET state = 'offered', order_id = 11";
    expect(await during(given, offer, LEAVE)).toEqual([{ state: 'left', returned: 11 }]);
    expect(await all('SELECT status FROM orders')).toEqual([{ status: 'cancelled' }]);
  });

  const OFFERED = {
    orders: [order(11, { offer_of: 3 })],
    places: [place(3, { state: 'offered', order_id: 11 })],
  };
  const ACCEPT = "SELECT stockade_accept_offer(11, 'buyer 11', 1, NULL, NULL)";

  it('keeps an offer that it accepts meanwhile', async () => {
    expect(await during(OFFERED, ACCEPT, LEAVE)).toEqual([]);
    expect(await all('SELECT status FROM orders')).toEqual([{ status: 'unpaid' }]);
  });
});

describe.each([
  ['stockade_settle_late_payment', "'card'"],
  ['stockade_settle_late_payment_by', "'card', 'olga', 'asked'"],
])('a decision about a late payment by %s', (name, words) => {
  const settle = (taken: number) => `SELECT verdict FROM ${name}(11, ${taken}, ${words})`;
  const LATE = { status: 'expired', expired_at: -5, expires_at: -6 };

  it('is the first of two', async () => {
    const given = { orders: [order(11, LATE), order(12), order(13)] };
    const earlier = "SELECT stockade_settle_late_payment(11, 12, 'card')";
    expect(await during(given, earlier, settle(13))).toEqual([{ verdict: 'retaken' }]);
    expect(await all('SELECT status FROM orders ORDER BY order_id')).toEqual(
      ['expired', 'paid', 'cancelled'].map((status) => ({ status })),
    );
    expect(await all('SELECT * FROM order_changes')).toEqual([]);
  });

  it('locks the two orders and no other', async () => {
    const { first, second } = await begin({
      orders: [order(11, LATE), order(12, { status: 'cancelled' }), order(13)],
    });
    await second.query('BEGIN');
    expect((await second.query(settle(12))).rows).toEqual([{ verdict: 'over' }]);
    const free = await first.query('SELECT order_id::integer AS id FROM orders FOR UPDATE SKIP LOCKED');
    expect(free.rows).toEqual([{ id: 13 }]);
    await second.query('ROLLBACK');
  });

  it('locks the orders by their ids, so that no two calls wait for each other', async () => {
    const { first, second } = await begin({ orders: [order(12), order(11, LATE)] });
    await first.query('BEGIN');
    await first.query('SELECT 1 FROM orders WHERE order_id = 11 FOR UPDATE');
    // Rows are then read in the order in which they lie.
    await second.query('SET enable_indexscan = off');
    const { answer, settled } = await start(second, settle(12), first);
    await settled;
    const free = await first.query(
      'SELECT order_id::integer AS id FROM orders WHERE order_id = 12 FOR UPDATE SKIP LOCKED',
    );
    expect(free.rows).toEqual([{ id: 12 }]);
    await first.query('COMMIT');
    expect(await answer).toEqual([{ verdict: 'retaken' }]);
    await second.query('RESET enable_indexscan');
  });
});
