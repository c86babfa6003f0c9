/** Applies one batch of the order logs to Postgres: its effects, and that a refused batch changes nothing. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { LogEntry, TakeOrder } from '../../../src/engine/contract.ts';
import type { SaleStatus } from '../../../src/operations/sale-operations.ts';
import { rows } from '../../../src/postgres/database.ts';
import { applyBatch, applySlices, type GuardRefused } from '../../../src/sync/apply/apply.ts';
import { applyEach, sellEach } from '../../../src/sync/apply/apply-each.ts';
import { type Batch, batchOf, type Slice } from '../../../src/sync/apply/batch.ts';
import { seed, until } from '../../support/fixtures.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { type Random, random } from '../../support/random.ts';
import { Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';
import { inTier } from '../../support/tier.ts';

let shop: Shop;
let nextOrder: number;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
});

afterAll(() => shop[Symbol.asyncDispose]());

beforeEach(async () => {
  await query(asAdmin(shop.databaseUrl), 'TRUNCATE sales, orders CASCADE');
  nextOrder = 1;
});

function order(buyerId: string, { quantity = 1, key = '' }: Partial<TakeOrder> = {}): TakeOrder {
  return { orderId: String(nextOrder++), buyerId, quantity, key };
}

interface LogSpec {
  readonly segment?: number;
  readonly generation?: number;
  /** The entry that was applied last. */
  readonly since?: number;
  readonly tail?: string;
}

/** A read of one log: one entry per list of orders. */
function log({ id: saleId }: Pick<SaleStatus, 'id'>, lists: TakeOrder[][], spec: LogSpec = {}) {
  const { segment = 0, generation = 1, since = 0, tail = '' } = spec;
  const entries: LogEntry[] = [];
  let ordersSoFar = since;
  for (const orders of lists) {
    ordersSoFar += orders.length;
    const previous = entries.at(-1)?.tail ?? tail;
    const seq = since + entries.length + 1;
    entries.push({ seq, previous, tail: orders[0]!.orderId, ordersSoFar, orders });
  }
  return { position: { saleId, segment, generation, seq: since, tail }, head: undefined, entries };
}

const batch = (...logs: ReturnType<typeof log>[]): Batch => batchOf(logs, 1_000_000);

/** Everything that a batch may change. */
async function state(): Promise<unknown> {
  const [sales, cursors, orders, returns] = await Promise.all([
    rows(shop.db, 'SELECT id, stock, generation FROM sales ORDER BY id'),
    rows(shop.db, 'SELECT * FROM segment_cursors ORDER BY sale_id, segment'),
    rows(shop.db, 'SELECT * FROM orders ORDER BY order_id'),
    rows(shop.db, 'SELECT * FROM stock_returns ORDER BY order_id'),
  ]);
  return { sales, cursors, orders, returns };
}

/** Checks that the batch is refused with that error and changes nothing. */
async function expectRefused(refused: Batch, error: object): Promise<void> {
  const before = await state();
  await expect(applyBatch(shop.db, refused)).rejects.toMatchObject(error);
  expect(await state()).toEqual(before);
}

const stockOf = async (saleId: string) =>
  Number(
    (await rows<{ stock: string }>(shop.db, 'SELECT stock FROM sales WHERE id = ?', [saleId]))[0]!.stock,
  );

describe('a limit that is raised while a batch waits for the row of its sale', () => {
  test.each([
    ['leaves room', 1, 'applied'],
    ['leaves no room', 2, 'limit'],
  ])('and another order of the buyer that %s', async (_, quantity, end) => {
    const sale = await shop.sell({ stock: 10, segments: 2 });
    const raise = await shop.db.transaction();
    await raise.raw('UPDATE sales SET per_buyer_limit = 2 WHERE id = ?', [sale.id]);
    // This batch has read the limit 1 by the time at which it waits.
    const waiting = applyBatch(shop.db, batch(log(sale, [[order('anna')]]))).then(
      () => 'applied',
      (error: GuardRefused) => error.reason,
    );
    await until(() => shop.isBlocked(), { what: 'the batch waits' });
    const other = log(sale, [[order('anna', { quantity })]], { segment: 1 });
    await applySlices(raise, batch(other).slices, batch(other).slices);
    await raise.commit();
    expect(await waiting).toBe(end);
    expect(await stockOf(sale.id)).toBe(8);
  });
});

describe('a batch', () => {
  test('of several logs and sales takes the units, moves the cursors and inserts the orders', async () => {
    const [jazz, rock] = [
      await shop.sell({ stock: 10, segments: 2 }),
      await shop.sell({ stock: 10, segments: 1, perBuyerLimit: 5 }),
    ];
    const [anna, ben, cleo] = [
      order('anna', { key: 'k1' }),
      order('ben'),
      order('cleo', { quantity: 3, key: 'k2' }),
    ];
    await applyBatch(
      shop.db,
      batch(log(rock, [[cleo]]), log(jazz, [[anna]]), log(jazz, [[ben]], { segment: 1 })),
    );
    expect([await stockOf(jazz.id), await stockOf(rock.id)]).toEqual([8, 7]);
    const cursors = await rows(
      shop.db,
      'SELECT sale_id, segment, position, tail, orders, units FROM segment_cursors ORDER BY sale_id = ?, segment',
      [rock.id],
    );
    const at = { position: '1', orders: '1' };
    expect(cursors).toEqual([
      { sale_id: jazz.id, segment: 0, tail: anna.orderId, units: '1', ...at },
      { sale_id: jazz.id, segment: 1, tail: ben.orderId, units: '1', ...at },
      { sale_id: rock.id, segment: 0, tail: cleo.orderId, units: '3', ...at },
    ]);
    const orders = await rows(
      shop.db,
      `SELECT order_id, sale_id, buyer_id, quantity, idempotency_key, status, one_per_buyer
       FROM orders ORDER BY order_id`,
    );
    const unpaid = { status: 'unpaid' };
    expect(orders).toEqual([
      {
        ...{ order_id: anna.orderId, sale_id: jazz.id, buyer_id: 'anna', quantity: 1 },
        ...{ idempotency_key: 'k1', one_per_buyer: true, ...unpaid },
      },
      {
        ...{ order_id: ben.orderId, sale_id: jazz.id, buyer_id: 'ben', quantity: 1 },
        ...{ idempotency_key: null, one_per_buyer: true, ...unpaid },
      },
      {
        ...{ order_id: cleo.orderId, sale_id: rock.id, buyer_id: 'cleo', quantity: 3 },
        ...{ idempotency_key: 'k2', one_per_buyer: false, ...unpaid },
      },
    ]);
  });

  test('may take the last unit', async () => {
    const sale = await shop.sell({ stock: 3 });
    await applyBatch(shop.db, batch(log(sale, [[order('anna'), order('ben')], [order('cleo')]])));
    expect(await stockOf(sale.id)).toBe(0);
  });
});

describe('a batch is refused as a whole', () => {
  test('when it was applied already', async () => {
    const sale = await shop.sell({ stock: 10 });
    const applied = batch(log(sale, [[order('anna')]]));
    await applyBatch(shop.db, applied);
    await expectRefused(applied, { code: 'cursor_moved' });
  });

  test('when another sync has applied a part of it', async () => {
    const sale = await shop.sell({ stock: 10 });
    const [first, second] = [[order('anna')], [order('ben')]];
    await applyBatch(shop.db, batch(log(sale, [first])));
    await expectRefused(batch(log(sale, [first, second])), { code: 'cursor_moved' });
  });

  test('when it begins behind the cursor', async () => {
    const sale = await shop.sell({ stock: 10 });
    await expectRefused(batch(log(sale, [[order('anna')]], { since: 1, tail: '77' })), {
      code: 'cursor_moved',
    });
  });

  test('when only one of its logs was applied by another', async () => {
    const sale = await shop.sell({ stock: 10, segments: 2 });
    const [here, there] = [log(sale, [[order('anna')]]), log(sale, [[order('ben')]], { segment: 1 })];
    await applyBatch(shop.db, batch(there));
    await expectRefused(batch(here, there), { code: 'cursor_moved' });
  });

  test('when it is of another generation', async () => {
    const sale = await shop.sell({ stock: 10 });
    for (const generation of [0, 2]) {
      await expectRefused(batch(log(sale, [[order('anna')]], { generation })), { code: 'cursor_moved' });
    }
  });

  test('when the sale has fewer units', async () => {
    const sale = await shop.sell({ stock: 3, perBuyerLimit: 2 });
    await expectRefused(batch(log(sale, [[order('anna', { quantity: 2 }), order('ben', { quantity: 2 })]])), {
      code: 'guard_refused',
      reason: 'stock',
    });
  });

  test('when one sale of two has fewer units', async () => {
    const [plenty, scarce] = [await shop.sell({ stock: 10 }), await shop.sell({ stock: 1 })];
    const wanted = [log(plenty, [[order('anna')]]), log(scarce, [[order('anna'), order('ben')]])];
    await expectRefused(batch(...wanted), { reason: 'stock' });
  });

  test('when it holds an order id that exists already', async () => {
    const sale = await shop.sell({ stock: 10 });
    const anna = order('anna');
    await applyBatch(shop.db, batch(log(sale, [[anna]])));
    const again = { ...anna, buyerId: 'ben' };
    await expectRefused(batch(log(sale, [[order('cleo'), again]], { since: 1, tail: anna.orderId })), {
      reason: 'duplicate',
    });
  });
});

describe('the limit of one', () => {
  test('holds within a batch', async () => {
    const sale = await shop.sell({ stock: 10 });
    await expectRefused(batch(log(sale, [[order('anna')], [order('anna')]])), { reason: 'limit' });
  });

  test('holds over batches, also if another log brings the second order', async () => {
    const sale = await shop.sell({ stock: 10, segments: 2 });
    await applyBatch(shop.db, batch(log(sale, [[order('anna')]])));
    await expectRefused(batch(log(sale, [[order('ben'), order('anna')]], { segment: 1 })), {
      reason: 'limit',
    });
  });

  test('does not count returned units', async () => {
    const sale = await shop.sell({ stock: 10 });
    const first = order('anna');
    await applyBatch(shop.db, batch(log(sale, [[first]])));
    await shop.db.raw("UPDATE orders SET status = 'cancelled'");
    await applyBatch(shop.db, batch(log(sale, [[order('anna')]], { since: 1, tail: first.orderId })));
  });
});

describe('the limit of five', () => {
  const five = { stock: 100, perBuyerLimit: 5, segments: 2 };

  test('may be reached in several orders', async () => {
    const sale = await shop.sell(five);
    const orders = [order('anna', { quantity: 3 }), order('anna', { quantity: 2 })];
    await applyBatch(shop.db, batch(log(sale, [orders])));
    expect(await stockOf(sale.id)).toBe(95);
  });

  test('holds within a batch, over its logs', async () => {
    const sale = await shop.sell(five);
    const [here, there] = [order('anna', { quantity: 3 }), order('anna', { quantity: 3 })];
    await expectRefused(batch(log(sale, [[here]]), log(sale, [[there]], { segment: 1 })), {
      reason: 'limit',
    });
  });

  test('holds over batches', async () => {
    const sale = await shop.sell(five);
    const first = order('anna', { quantity: 4 });
    await applyBatch(shop.db, batch(log(sale, [[first]])));
    const second = [order('ben'), order('anna', { quantity: 2 })];
    await expectRefused(batch(log(sale, [second], { since: 1, tail: first.orderId })), { reason: 'limit' });
  });

  test('does not count returned units, nor those of another sale', async () => {
    const [sale, other] = [await shop.sell(five), await shop.sell(five)];
    const first = order('anna', { quantity: 4 });
    await applyBatch(shop.db, batch(log(sale, [[first]])));
    await shop.db.raw("UPDATE orders SET status = 'refunded'");
    await applyBatch(
      shop.db,
      batch(
        log(other, [[order('anna', { quantity: 5 })]]),
        log(sale, [[order('anna', { quantity: 5 })]], { since: 1, tail: first.orderId }),
      ),
    );
  });

  test('one key buys once: the second order with it is refused', async () => {
    const sale = await shop.sell(five);
    await expectRefused(batch(log(sale, [[order('anna', { key: 'k' }), order('anna', { key: 'k' })]])), {
      reason: 'limit',
    });
  });
});

describe('order by order', () => {
  test('fitting orders are sold in log order, the rest is rejected with a reason, and the cursors move', async () => {
    const sale = await shop.sell({ stock: 3, segments: 1 });
    const [anna, again, ben, cleo, dora] = ['anna', 'anna', 'ben', 'cleo', 'dora'].map((b) => order(b));
    const refused = batch(log(sale, [[anna!, again!], [ben!, cleo!], [dora!]]));
    await expectRefused(refused, { code: 'guard_refused' });
    const rejected = await applyEach(shop.db, refused);
    expect([...rejected.values()]).toEqual([
      { orderId: again!.orderId, reason: 'limit' },
      { orderId: dora!.orderId, reason: 'stock' },
    ]);
    expect(await stockOf(sale.id)).toBe(0);
    expect(
      await rows(
        shop.db,
        'SELECT order_id, status, rejected_because FROM orders WHERE one_per_buyer ORDER BY order_id',
      ),
    ).toEqual([
      { order_id: anna!.orderId, status: 'unpaid', rejected_because: null },
      { order_id: again!.orderId, status: 'rejected', rejected_because: 'limit' },
      { order_id: ben!.orderId, status: 'unpaid', rejected_because: null },
      { order_id: cleo!.orderId, status: 'unpaid', rejected_because: null },
      { order_id: dora!.orderId, status: 'rejected', rejected_because: 'stock' },
    ]);
    // An order beyond the limit leaves its unit in the stock of Postgres, so the segment gets the unit back. An order beyond the
    // stock does not.
    expect(await rows(shop.db, 'SELECT order_id, units FROM stock_returns ORDER BY order_id')).toEqual([
      { order_id: again!.orderId, units: 1 },
      { order_id: dora!.orderId, units: 0 },
    ]);
    expect(await rows(shop.db, 'SELECT position, tail, orders, units FROM segment_cursors')).toEqual([
      { position: '3', tail: dora!.orderId, orders: '5', units: '5' },
    ]);
  });

  test('a batch whose cursor has moved changes nothing', async () => {
    const sale = await shop.sell({ stock: 1 });
    const applied = batch(log(sale, [[order('anna'), order('ben')]]));
    await applyEach(shop.db, applied);
    const before = await state();
    await expect(applyEach(shop.db, applied)).rejects.toMatchObject({ code: 'cursor_moved' });
    expect(await state()).toEqual(before);
  });

  test('an order that was rejected before and is taken again is removed again', async () => {
    const sale = await shop.sell({ stock: 10 });
    const [first, second] = [order('anna'), order('anna')];
    await applyEach(shop.db, batch(log(sale, [[first, second]])));
    await shop.db.raw('UPDATE stock_returns SET applied_at = now()');
    const rejected = await applyEach(
      shop.db,
      batch(log(sale, [[second]], { since: 1, tail: first.orderId })),
    );
    expect([...rejected.values()]).toEqual([{ orderId: second.orderId, reason: 'limit' }]);
    expect(await rows(shop.db, 'SELECT order_id, units, applied_at FROM stock_returns')).toEqual([
      { order_id: second.orderId, units: 1, applied_at: null },
    ]);
    expect(await stockOf(sale.id)).toBe(9);
  });

  test('an order whose id was rejected in another sale is a duplicate, whatever the reason was there', async () => {
    const sale = await shop.sell({ stock: 10 });
    const other = await shop.sell({ stock: 10 });
    const [first, second] = [order('anna'), order('anna')];
    await applyEach(shop.db, batch(log(sale, [[first, second]])));
    const rejected = await applyEach(shop.db, batch(log(other, [[second]])));
    expect([...rejected.values()]).toEqual([{ orderId: second.orderId, reason: 'duplicate' }]);
    expect(await stockOf(other.id)).toBe(10);
  });

  test('an order with the id of another buyer’s ended order is taken out of its own buyer’s record', async () => {
    const sale = await shop.sell({ stock: 10 });
    const first = order('anna');
    await applyBatch(shop.db, batch(log(sale, [[first]])));
    await shop.db.raw("SELECT stockade_change_order(?, 'cancel', NULL, NULL)", [first.orderId]);
    await shop.db.raw('UPDATE stock_returns SET applied_at = now()');
    const again = { ...first, buyerId: 'bert' };
    const rejected = await applyEach(shop.db, batch(log(sale, [[again]], { since: 1, tail: first.orderId })));
    expect([...rejected.values()]).toEqual([{ orderId: first.orderId, reason: 'duplicate' }]);
    expect(await rows(shop.db, 'SELECT buyer_id, units, applied_at FROM stock_returns')).toEqual([
      { buyer_id: 'bert', units: 1, applied_at: null },
    ]);
  });

  test('an order that has ended and is taken again is removed again', async () => {
    const sale = await shop.sell({ stock: 10 });
    const first = order('anna');
    await applyBatch(shop.db, batch(log(sale, [[first]])));
    await shop.db.raw("SELECT stockade_change_order(?, 'cancel', NULL, NULL)", [first.orderId]);
    await shop.db.raw('UPDATE stock_returns SET applied_at = now()');
    const rejected = await applyEach(shop.db, batch(log(sale, [[first]], { since: 1, tail: first.orderId })));
    expect([...rejected.values()]).toEqual([{ orderId: first.orderId, reason: 'duplicate' }]);
    expect(
      await rows(shop.db, 'SELECT order_id, units, units_before, applied_at FROM stock_returns'),
    ).toEqual([{ order_id: first.orderId, units: 1, units_before: '1', applied_at: null }]);
    expect(await stockOf(sale.id)).toBe(10);
  });
});

describe('a refused batch, applied in parts', () => {
  const ROUNDS = inTier({ test: 5, release: 100 });

  test('has the same result as each order by itself, in log order', async () => {
    const rng = random(seed());
    let refusals = 0;
    for (let round = 1; round <= ROUNDS; round++) {
      const sales = [
        await shop.sell({ stock: 100, segments: 2 }),
        await shop.sell({ stock: 100, segments: 2, perBuyerLimit: 3 }),
      ];
      // Orders that were sold or rejected before; some of them are taken again.
      const before = sales.map((sale) => log(sale, someEntries(rng, sale.perBuyerLimit, [], 2)));
      await applyEach(shop.db, batch(...before));
      for (const sale of sales) {
        await shop.db.raw('UPDATE sales SET stock = ? WHERE id = ?', [rng.whole(0, 60), sale.id]);
      }
      const known = before.flatMap(({ entries }) => entries.flatMap((entry) => entry.orders));
      const { slices } = batch(
        ...sales.flatMap((sale) =>
          [0, 1].map((segment) => log(sale, someEntries(rng, sale.perBuyerLimit, known, 5), { segment })),
        ),
      );
      const [together, singly] = [await outcomeOf([slices]), await outcomeOf(oneByOne(slices))];
      expect(together, `round ${round}`).toEqual(singly);
      refusals += together.rejected.size;
    }
    expect(refusals).toBeGreaterThan(ROUNDS);
  });

  /** Up to `most` entries of few buyers, who often order beyond their limit, or under an id that is used. */
  function someEntries(rng: Random, limit: number, known: readonly TakeOrder[], most: number): TakeOrder[][] {
    const taken = [...known];
    return Array.from({ length: rng.whole(1, most) }, () =>
      Array.from({ length: rng.whole(1, 12) }, () => {
        const again = taken.length > 0 && rng.chance(0.1) ? rng.pick(taken) : undefined;
        const made = order(`buyer-${rng.whole(1, 150)}`, {
          quantity: rng.whole(1, limit),
          key: rng.chance(0.2) ? `key-${rng.whole(1, 3)}` : '',
        });
        const next = again ? (rng.chance(0.5) ? again : { ...made, orderId: again.orderId }) : made;
        taken.push(next);
        return next;
      }),
    );
  }

  function oneByOne(slices: readonly Slice[]): Slice[][] {
    return slices.flatMap((slice) =>
      slice.entries.flatMap((entry) =>
        entry.orders.map((one) => [
          { ...slice, entries: [{ ...entry, orders: [one] }], units: one.quantity },
        ]),
      ),
    );
  }

  /** Applies these batches one after the other, and rolls them back. @returns what they have changed */
  async function outcomeOf(batches: readonly (readonly Slice[])[]) {
    const trx = await shop.db.transaction();
    try {
      const rejected = new Map();
      for (const slices of batches) {
        for (const [id, rejection] of await sellEach(trx, slices)) rejected.set(id, rejection);
      }
      return {
        rejected,
        stock: await rows(trx, 'SELECT id, stock FROM sales ORDER BY id'),
        orders: await rows(
          trx,
          `SELECT order_id, sale_id, buyer_id, quantity, status, idempotency_key, rejected_because
           FROM orders ORDER BY order_id`,
        ),
        returns: await rows(
          trx,
          'SELECT order_id, sale_id, buyer_id, units, reason, applied_at FROM stock_returns ORDER BY order_id',
        ),
      };
    } finally {
      await trx.rollback();
    }
  }
});
