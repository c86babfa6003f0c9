/** What stockade_give_places, stockade_accept_offer and stockade_leave_queue answer and write. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { insert, openFunctions, type Row, type Rows, run } from '../../../support/postgres/run-function.ts';

let client: pg.Client;
beforeAll(async () => {
  client = await openFunctions();
});
afterAll(() => client.end());

const place = (number: number, buyer_id: string, more: Row = {}): Row => ({
  ...{ sale_id: 'q', number, buyer_id, ...more },
});

describe('places', () => {
  /** Four places of this sale are behind its head. */
  const QUEUE = { sale_id: 'q', last_number: 7, head: 3 };
  const SALES: readonly Row[] = [
    { id: 'p', queue: 'draw', max_waiting: 100 },
    { id: 'q', queue: 'fifo', max_waiting: 6 },
  ];
  const QUEUES = [{ sale_id: 'p', last_number: 40 }, QUEUE];
  const PLACES = [
    place(4, 'anna'),
    place(5, 'ben', { state: 'offered' }),
    place(6, 'cleo', { state: 'left', reason: 'asked' }),
    place(7, 'dora', { sale_id: 'p' }),
    place(7, 'zoe'),
  ];

  const ask = (buyers: readonly (readonly [string, number])[], more: Rows = {}) =>
    run(client, {
      given: { sales: SALES, queues: QUEUES, places: PLACES, ...more },
      sql: "SELECT * FROM stockade_give_places('q', $1, $2)",
      bindings: [buyers.map(([buyer]) => buyer), buyers.map(([, quantity]) => quantity)],
    });
  const fresh = (number: number, buyer_id: string, quantity = 1) =>
    place(number, buyer_id, { quantity, state: 'waiting', given_at: 0 });
  const had = (number: number, buyer_id: string, state = 'waiting') =>
    place(number, buyer_id, { quantity: 1, state, given_at: -600 });
  /** In the order of their numbers: the function promises none. */
  const shown = (rows: readonly Row[]) =>
    rows.map((row) => ({ ...row, number: Number(row.number) })).sort((a, b) => a.number - b.number);

  it('are given in the order of the buyers, beside those that they have', async () => {
    const { returned, written } = await ask([
      ['anna', 3],
      ['dora', 2],
      ['ben', 3],
      ['cleo', 1],
    ]);
    expect(shown(returned)).toEqual([
      had(4, 'anna'),
      had(5, 'ben', 'offered'),
      fresh(8, 'dora', 2),
      fresh(9, 'cleo'),
    ]);
    expect(written).toEqual({
      queues: { q: { last_number: 9 } },
      places: { 'q 8': fresh(8, 'dora', 2), 'q 9': fresh(9, 'cleo') },
    });
  });

  it.each([
    [4, 0],
    [3, 0],
    [1, 0],
    [5, 1],
    [6, 2],
    [7, 3],
  ])('are at most %i behind the head: %i are given', async (max_waiting, given) => {
    const sales = [SALES[0]!, { ...SALES[1], max_waiting }];
    const newcomers = ['fay', 'gus', 'hal'] as const;
    const { returned, written } = await ask([...newcomers.map((name) => [name, 1] as const), ['zoe', 1]], {
      sales,
    });
    const places = newcomers.slice(0, given).map((name, i) => fresh(8 + i, name));
    expect(shown(returned)).toEqual([had(7, 'zoe'), ...places]);
    const rows = places.map((one) => [`q ${one.number}`, one]);
    expect(written).toEqual(
      given === 0 ? {} : { queues: { q: { last_number: 7 + given } }, places: Object.fromEntries(rows) },
    );
  });

  it('are only found, and nothing is written, if each buyer has one', async () => {
    const { returned, written } = await ask([
      ['zoe', 1],
      ['anna', 2],
    ]);
    expect(shown(returned)).toEqual([had(4, 'anna'), had(7, 'zoe')]);
    expect(written).toEqual({});
  });

  describe('of buyers who hold units', () => {
    const order = (order_id: number, buyer_id: string, more: Row = {}): Row => ({
      ...{ order_id, sale_id: 'q', buyer_id, status: 'paid', ...more },
    });
    const holding = (orders: readonly Row[], more: Row = {}) => ({
      sales: [SALES[0]!, { ...SALES[1], max_waiting: 100, per_buyer_limit: 3, live_orders: 1, ...more }],
      orders,
    });
    const many = { quantity: 2, one_per_buyer: false };

    it.each<[string, readonly Row[], number, number]>([
      ['nothing', [], 3, 1],
      ['units with which these are the limit', [order(1, 'fay', many)], 1, 1],
      ['units with which these are above the limit', [order(1, 'fay', many)], 2, 0],
      ['one unit, bought when one was the limit', [order(1, 'fay')], 3, 0],
      ['unpaid units', [order(1, 'fay', { ...many, status: 'unpaid' })], 2, 0],
      ['redeemed units', [order(1, 'fay', { ...many, status: 'redeemed' })], 2, 0],
      ['units of several orders', [order(1, 'fay', many), order(2, 'fay')], 1, 0],
      ['units that were given back', [order(1, 'fay', { ...many, status: 'cancelled' })], 2, 1],
      ['units of another sale', [order(1, 'fay', { ...many, sale_id: 'p' })], 2, 1],
      // The head judges that, as it must if the limit was lowered since.
      ['nothing, and want more than the limit', [], 4, 1],
    ])('%s: are given as far as the limit allows', async (_, orders, quantity, given) => {
      const { returned } = await ask([['fay', quantity]], holding(orders));
      expect(shown(returned)).toEqual(given ? [fresh(8, 'fay', quantity)] : []);
    });

    it('leave no gap in the numbers, and those that they have are found', async () => {
      const { returned, written } = await ask(
        [
          ['anna', 3],
          ['gus', 1],
          ['fay', 3],
          ['hal', 1],
        ],
        holding([order(1, 'fay'), order(2, 'anna')]),
      );
      expect(shown(returned)).toEqual([had(4, 'anna'), fresh(8, 'gus'), fresh(9, 'hal')]);
      expect(written.queues).toEqual({ q: { last_number: 9 } });
    });

    it('are looked for if it is not known how many orders hold units, and not if none does', async () => {
      const orders = [order(1, 'fay', many)];
      expect((await ask([['fay', 2]], holding(orders, { live_orders: null }))).returned).toEqual([]);
      expect((await ask([['fay', 2]], holding(orders, { live_orders: 0 }))).returned).toHaveLength(1);
    });
  });

  it.each<[string, Row | undefined]>([
    ['has no queue', { queue: 'off' }],
    ['is closed', { state: 'closed' }],
    ['is being deleted', { deleting_since: -1 }],
    ['is not there', undefined],
  ])('are not given, but found, if the sale %s', async (_, more) => {
    const sales = [SALES[0]!, ...(more ? [{ ...SALES[1], ...more }] : [])];
    const { returned, written } = await ask(
      [
        ['anna', 1],
        ['fay', 1],
      ],
      { sales },
    );
    expect(shown(returned)).toEqual([had(4, 'anna')]);
    expect(written).toEqual({});
  });

  it('are looked up one by one, even in a queue that has filled before Postgres has statistics of it', async () => {
    await client.query('BEGIN');
    onTestFinished(async () => {
      await client.query('ROLLBACK');
    });
    await insert(client, { sales: SALES, queues: QUEUES });
    await client.query(
      "INSERT INTO places (sale_id, number, buyer_id, quantity) SELECT 'p', n, 'buyer ' || n, 1 FROM generate_series(1, 20000) n",
    );
    const rowsRead = async () => {
      const { rows } = await client.query<{ read: string }>(
        "SELECT seq_tup_read + idx_tup_fetch AS read FROM pg_stat_xact_user_tables WHERE relname = 'places'",
      );
      return Number(rows[0]!.read);
    };
    await client.query('DISCARD PLANS');
    const before = await rowsRead();
    const buyers = Array.from({ length: 1000 }, (_, i) => `buyer ${i + 1}`);
    await client.query("SELECT * FROM stockade_give_places('p', $1, $2)", [buyers, buyers.map(() => 1)]);
    // Each of them twice: to see who has none, and for the answer.
    expect((await rowsRead()) - before).toBeLessThan(3 * buyers.length);
  });

  describe('mark their buyers as present', () => {
    const PAGE = 4096;
    /** The numbers whose bits are set, by page. */
    const marked = async () => {
      const { rows } = await client.query<{ page: string; present: string; is_now: boolean }>(
        `SELECT page, present::text, period = floor(extract(epoch FROM now()) / 60)::bigint AS is_now
         FROM queue_presence WHERE sale_id = 'q' ORDER BY page`,
      );
      expect(rows.every((row) => row.is_now)).toBe(true);
      return rows.map(({ page, present }) => [
        Number(page),
        [...present].flatMap((bit, at) => (bit === '1' ? [PAGE * Number(page) + at + 1] : [])),
      ]);
    };
    const give = (buyers: readonly string[]) =>
      client.query("SELECT * FROM stockade_give_places('q', $1, $2)", [buyers, buyers.map(() => 1)]);
    const inSale = async (sale: Row, queue: Row) => {
      await client.query('BEGIN');
      onTestFinished(async () => {
        await client.query('ROLLBACK');
      });
      await insert(client, {
        sales: [{ id: 'q', queue: 'fifo', max_waiting: 1_000_000, ...sale }],
        queues: [{ sale_id: 'q', ...queue }],
      });
    };

    it.each<[number, string[], [number, number[]][]]>([
      [0, ['anna', 'ben'], [[0, [1, 2]]]],
      [PAGE - 1, ['anna'], [[0, [PAGE]]]],
      [PAGE, ['anna'], [[1, [PAGE + 1]]]],
      [
        PAGE - 1,
        ['anna', 'ben', 'cleo'],
        [
          [0, [PAGE]],
          [1, [PAGE + 1, PAGE + 2]],
        ],
      ],
    ])('behind %i places: %j', async (last_number, buyers, pages) => {
      await inSale({}, { last_number });
      await give(buyers);
      expect(await marked()).toEqual(pages);
    });

    it('beside those who are present already, over more than one page', async () => {
      await inSale({}, { last_number: 10 });
      await give(Array.from({ length: PAGE }, (_, i) => `buyer ${i}`));
      await give(['anna', 'buyer 7']);
      const numbers = (await marked()).flatMap(([, of]) => of);
      expect(numbers).toEqual(Array.from({ length: PAGE + 1 }, (_, i) => 11 + i));
    });

    it('but only those who get a new place, and nobody if nobody is ever absent', async () => {
      await inSale({ presence_seconds: 0 }, { last_number: 10 });
      await give(['anna']);
      expect(await marked()).toEqual([]);
      await client.query("UPDATE sales SET presence_seconds = 60 WHERE id = 'q'");
      await give(['anna']);
      expect(await marked()).toEqual([]);
    });
  });

  it('are given while the sale is paused', async () => {
    const sales = [SALES[0]!, { ...SALES[1], state: 'paused' }];
    expect(shown((await ask([['fay', 1]], { sales })).returned)).toEqual([fresh(8, 'fay')]);
  });
});

const SALES: readonly Row[] = [
  { id: 'p', state: 'paused', pay_within_seconds: 10, live_orders: 3 },
  { id: 'q', pay_within_seconds: 60, stock: 10, live_orders: 7, generation: 4 },
  { id: 'deleting', deleting_since: -1 },
];
const offer = (order_id: number, buyer_id: string, offer_of: number | null, more: Row = {}): Row => ({
  ...{ order_id, sale_id: 'q', buyer_id, quantity: 2, offer_of, expires_at: 5, ...more },
});
const ORDERS = [
  offer(10, 'ben', 4, { reference: 'ref 2' }),
  offer(11, 'anna', 3, { reference: 'ref 1', metadata: { x: 1 } }),
];
const PLACES = [
  place(3, 'anna', { state: 'offered', order_id: 11 }),
  place(4, 'ben', { state: 'offered', order_id: 10 }),
  place(3, 'dora', { sale_id: 'p', state: 'offered' }),
  place(4, 'anna', { sale_id: 'p' }),
  place(5, 'eve'),
];

describe('an offer', () => {
  interface Asked {
    readonly order?: Row;
    readonly by?: string;
    readonly units?: number;
    readonly reference?: string;
    readonly metadata?: object;
  }
  const accept = ({ order = {}, by = 'anna', units = 2, reference, metadata }: Asked) =>
    run(client, {
      given: { sales: SALES, orders: [ORDERS[0]!, { ...ORDERS[1], ...order }], places: PLACES },
      sql: 'SELECT verdict, to_jsonb(stands) AS stands FROM stockade_accept_offer(11, $1, $2, $3, $4)',
      bindings: [by, units, reference ?? null, metadata ? JSON.stringify(metadata) : null],
    });

  it.each<[string, Asked, Row]>([
    ['keeps its note', {}, {}],
    ['gets a reference', { reference: 'mine' }, { reference: 'mine' }],
    ['gets metadata', { metadata: { y: 2 } }, { metadata: { y: 2 } }],
  ])('that is accepted becomes an order, and %s', async (_, asked, noted) => {
    const { returned, written, events, orders } = await accept(asked);
    expect(written).toEqual({
      orders: { 11: { offer_of: null, expires_at: 60, ...noted } },
      places: { 'q 3': { state: 'bought', ended_at: 0 } },
    });
    expect(events).toEqual(['committed 11']);
    expect(returned).toEqual([{ verdict: 'done', stands: orders[11] }]);
  });

  it.each<[string, Asked, string]>([
    ['is another buyer’s', { by: 'ben' }, 'forbidden'],
    ['is for another number of units', { units: 1 }, 'quantity'],
    ['was accepted', { order: { offer_of: null } }, 'done'],
    ['was accepted and paid', { order: { offer_of: null, status: 'paid', expires_at: -1 } }, 'done'],
    ['was accepted, and its time to pay is over', { order: { offer_of: null, expires_at: -1 } }, 'done'],
    ['was accepted and not paid in time', { order: { offer_of: null, status: 'expired' } }, 'late'],
    ['was accepted and cancelled', { order: { offer_of: null, status: 'cancelled' } }, 'late'],
    ['was accepted, paid and refunded', { order: { offer_of: null, status: 'refunded' } }, 'late'],
    ['was given back', { order: { status: 'cancelled' } }, 'late'],
    ['ends now', { order: { expires_at: 0 } }, 'late'],
    ['ended before', { order: { expires_at: -1 } }, 'late'],
    ['is of a paused sale', { order: { sale_id: 'p' } }, 'paused'],
    ['is of a paused sale, and its time is over', { order: { sale_id: 'p', expires_at: -1 } }, 'paused'],
    ['is of a paused sale, and was given back', { order: { sale_id: 'p', status: 'cancelled' } }, 'late'],
  ])('is not accepted if it %s', async (_, asked, verdict) => {
    const { returned, written, events, orders } = await accept(asked);
    expect([written, events]).toEqual([{}, []]);
    expect(returned).toEqual([{ verdict, stands: orders[11] }]);
  });

  it.each<[string, Row]>([
    ['is not there', { order_id: 12 }],
    ['is of a sale that is being deleted', { sale_id: 'deleting' }],
  ])('is answered with nothing if it %s', async (_, order) => {
    const { returned, written } = await accept({ order });
    expect([returned, written]).toEqual([[], {}]);
  });
});

describe('a buyer who leaves', () => {
  const leave = (buyer: string, more: Rows = {}) =>
    run(client, {
      given: { sales: SALES, orders: ORDERS, places: PLACES, ...more },
      sql: 'SELECT to_jsonb(place) AS place, returned::integer FROM stockade_leave_queue($1, $2)',
      bindings: ['q', buyer],
    });
  const leaveNamed = (number: number) =>
    run(client, {
      given: { sales: SALES, orders: ORDERS, places: WAITING },
      sql: "SELECT to_jsonb(place) AS place FROM stockade_leave_queue('q', 'anna', $1)",
      bindings: [number],
    });
  const WAITING = PLACES.map((one) => (one.number === 3 ? { ...one, state: 'waiting' } : one));
  const placeNow = (more: Row) => ({ ...place(3, 'anna', { quantity: 1, given_at: -600 }), ...more });

  it('gives up a place that waits', async () => {
    const { returned, written, events } = await leave('anna', { places: WAITING });
    const left = { state: 'left', reason: 'asked', ended_at: 0 };
    expect(written).toEqual({ places: { 'q 3': left } });
    expect(returned).toEqual([{ place: placeNow({ ...left, order_id: 11 }) }]);
    expect(events).toEqual([]);
  });

  it('gives up the place that it names', async () => {
    const { written } = await leaveNamed(3);
    expect(written).toEqual({ places: { 'q 3': { state: 'left', reason: 'asked', ended_at: 0 } } });
  });

  it('keeps its place if it names another one', async () => {
    const { returned, written } = await leaveNamed(2);
    expect([returned, written]).toEqual([[], {}]);
  });

  it('gives an offer back', async () => {
    const { returned, written, events } = await leave('anna');
    const left = { state: 'left', reason: 'asked', ended_at: 0 };
    expect(written).toMatchObject({
      orders: { 11: { status: 'cancelled', cancelled_at: 0 } },
      places: { 'q 3': left },
      sales: { q: { stock: 12, live_orders: 6 } },
    });
    expect(Object.keys(written.orders!)).toEqual(['11']);
    expect(Object.keys(written.places!)).toEqual(['q 3']);
    expect(returned).toEqual([{ place: placeNow({ ...left, order_id: 11 }), returned: 11 }]);
    expect(events).toEqual(['declined 11']);
  });

  it.each<[string, Row]>([
    ['was accepted', { offer_of: null }],
    ['is of another place', { offer_of: 5 }],
    ['is paid', { status: 'paid' }],
    ['is another order', { order_id: 12 }],
  ])('keeps the place as it is, if its order %s', async (_, more) => {
    const orders = [ORDERS[0]!, { ...ORDERS[1], ...more }];
    const { returned, written } = await leave('anna', { orders });
    expect(written).toEqual({});
    expect(returned).toEqual([{ place: placeNow({ state: 'offered', order_id: 11 }) }]);
  });

  it.each<[string, Rows]>([
    ['never had a place there', { places: PLACES.slice(1) }],
    ['has left before', { places: [{ ...PLACES[0], state: 'left' }, ...PLACES.slice(1)] }],
    ['has bought', { places: [{ ...PLACES[0], state: 'bought' }, ...PLACES.slice(1)] }],
  ])('and %s is answered with nothing', async (_, more) => {
    const { returned, written } = await leave('anna', more);
    expect([returned, written]).toEqual([[], {}]);
  });
});
