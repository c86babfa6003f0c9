/**
 * Sums over a sale's movements, returns and orders: each is of the rows that it names, of no others, and never of another sale.
 * Each row has another power of two as its units, so that a sum says which rows are in it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readCursors } from '../../../src/postgres/cursors.ts';
import { rows } from '../../../src/postgres/database.ts';
import { isStockExplained, readBegunUnits, readGivenUnits } from '../../../src/sales/given-units.ts';
import {
  closeArchive,
  closeMovement,
  coverMovements,
  readOpenMovements,
  readResizes,
  readWantedSegments,
} from '../../../src/sales/ledger.ts';
import { changesSince, readTruth } from '../../../src/verify/truth.ts';
import { Shop } from '../../support/shop/shop.ts';

const NOTHING = { count: 0, units: 0, ageS: 0 };
const STOCK = 1_000;
/** Ages are read while the test takes its time. */
const AGE_SLACK_S = 60;

let shop: Shop;
/** Two sales with the same rows, and one without any. */
let full: string;
let other: string;
let empty: string;

interface Row {
  readonly action: string;
  readonly units: number;
  readonly generation: number;
  readonly open: boolean;
  /** Seconds since it was written. */
  readonly age: number;
  readonly detail?: object;
}

const MOVEMENTS: readonly Row[] = [
  { action: 'top-up', units: 1, generation: 3, open: false, age: 9_000 },
  { action: 'top-up', units: 2, generation: 3, open: true, age: 100 },
  { action: 'top-up', units: 4, generation: 2, open: false, age: 9_000 },
  { action: 'top-up', units: 8, generation: 2, open: true, age: 200 },
  { action: 'withdraw', units: -16, generation: 3, open: false, age: 9_000 },
  { action: 'withdraw', units: -32, generation: 2, open: false, age: 9_000 },
  {
    action: 'withdraw',
    units: 0,
    generation: 3,
    open: true,
    age: 300,
    detail: { wanted: 64, undoing: true },
  },
  { action: 'pause', units: 0, generation: 3, open: true, age: 400 },
  { action: 'edit', units: 0, generation: 3, open: true, age: 500 },
  { action: 'close', units: 0, generation: 3, open: false, age: 9_000 },
  { action: 'resize', units: 0, generation: 2, open: false, age: 9_000, detail: { to: 16 } },
  { action: 'resize', units: 0, generation: 3, open: true, age: 700, detail: { to: 4 } },
  { action: 'resize', units: 0, generation: 3, open: true, age: 600, detail: { to: 32 } },
  { action: 'archive', units: 0, generation: 3, open: true, age: 800 },
];

const RETURNS = [
  { units: 1, before: 2, generation: 3, open: false, age: 9_000 },
  { units: 4, before: 8, generation: 3, open: true, age: 100 },
  { units: 16, before: 32, generation: 2, open: true, age: 200 },
];

const ORDERS = [
  { buyer: 'ann', units: 1, status: 'unpaid' },
  { buyer: 'ann', units: 2, status: 'paid' },
  { buyer: 'ben', units: 2, status: 'redeemed' },
  ...['cancelled', 'expired', 'refunded', 'rejected', 'rejected'].map((status) => ({
    ...{ buyer: 'cleo', units: 512, status },
  })),
];

let nextOrder = 1;

async function fill(saleId: string): Promise<void> {
  const { db } = shop;
  await db.raw('DELETE FROM segment_cursors WHERE sale_id = ?', [saleId]);
  await db.raw('UPDATE sales SET generation = 3 WHERE id = ?', [saleId]);
  for (const { action, units, generation, open, age, detail = {} } of MOVEMENTS)
    await db.raw(
      `INSERT INTO stock_movements (sale_id, action, units, reason, actor, detail, generation, moved_at, applied_at)
       VALUES (?, ?, ?, '', 'test', ?, ?, now() - make_interval(secs => ?), CASE WHEN ? THEN NULL ELSE now() END)`,
      [saleId, action, units, JSON.stringify(detail), generation, age, open],
    );
  for (const { units, before, generation, open, age } of RETURNS)
    await db.raw(
      `INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, units_before, reason, generation, created_at, applied_at)
       VALUES (?, ?, 'ann', ?, ?, '', ?, now() - make_interval(secs => ?), CASE WHEN ? THEN NULL ELSE now() END)`,
      [nextOrder++, saleId, units, before, generation, age, open],
    );
  for (const { buyer, units, status } of ORDERS)
    await db.raw(
      'INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer) VALUES (?, ?, ?, ?, ?, false)',
      [nextOrder++, saleId, buyer, units, status],
    );
  for (const [segment, generation, units] of [
    [1, 3, 200],
    [0, 3, 100],
    [2, 2, 5_000],
  ])
    await db.raw(
      `INSERT INTO segment_cursors (sale_id, segment, generation, position, tail, orders, units)
       VALUES (?, ?, ?, 7, '1', 7, ?)`,
      [saleId, segment!, generation!, units!],
    );
}

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
  [full, other, empty] = [
    (await shop.sell({ stock: STOCK, segments: 2, perBuyerLimit: 2 })).id,
    (await shop.sell({ stock: STOCK, segments: 2, perBuyerLimit: 2 })).id,
    (await shop.sell({ stock: STOCK, segments: 2 })).id,
  ];
  await fill(other);
  await fill(full);
});

afterAll(() => shop[Symbol.asyncDispose]());

const about = (ageS: number) =>
  expect.toSatisfy((age: number) => age >= ageS && age < ageS + AGE_SLACK_S, `${ageS} s or a bit more`);
const pending = (count: number, units: number, ageS: number) => ({ count, units, ageS: about(ageS) });

describe('the truth about a sale', () => {
  test('has the sums of its rows', async () => {
    const { row: _, cursors, ...truth } = await readTruth(shop.db, full);
    expect(truth).toEqual({
      ...{ movements: 1 + 2 + 4 + 8 - 16 - 32, toppedUp: 1 + 2, withdrawn: 16 },
      ...{ liveUnits: 5, committedOrders: 3, distinctBuyers: 2, rejectedOrders: 2, lostOrders: 0 },
      aboveLimit: ['buyer ann holds 3 units, above 2'],
      returned: 1 + 2 + 4 + 8,
      pendingReturns: pending(2, 4 + 16, 200),
      pendingTopUps: pending(2, 2 + 8, 200),
      openWithdrawals: pending(1, 64, 300),
      pendingChanges: pending(3, 0, 800),
      pendingResizes: pending(2, 0, 700),
      lastMovement: (await readOpenMovements(shop.db, full)).at(-1)!.id,
    });
    expect(cursors.map(({ segment, units }) => [segment, units])).toEqual([
      [0, 100],
      [1, 200],
      [2, 5_000],
    ]);
  });

  test('of a sale to which nothing happened is zero', async () => {
    const { row: _, cursors, lastMovement, ...truth } = await readTruth(shop.db, empty);
    expect(truth).toEqual({
      ...{ movements: 0, toppedUp: 0, withdrawn: 0, returned: 0 },
      ...{ liveUnits: 0, committedOrders: 0, distinctBuyers: 0, rejectedOrders: 0, lostOrders: 0 },
      aboveLimit: [],
      ...{ pendingReturns: NOTHING, pendingTopUps: NOTHING, openWithdrawals: NOTHING },
      ...{ pendingChanges: NOTHING, pendingResizes: NOTHING },
    });
    expect(cursors.map(({ seq }) => seq)).toEqual([0, 0]);
    expect(Number(lastMovement)).toBeGreaterThan(0);
  });

  test('says what has changed since it was read', async () => {
    const truth = await readTruth(shop.db, full);
    const cursors = await readCursors(shop.db, full);
    const since = (was: Partial<typeof truth>, then = cursors) =>
      changesSince(shop.db, { ...truth, ...was }, then);
    const nothing = { isRebuilt: false, isChanged: false, moved: new Set() };
    expect(await since({})).toEqual(nothing);
    expect(await since({ row: { ...truth.row, generation: 2 } })).toEqual({ ...nothing, isRebuilt: true });
    expect(await since({ lastMovement: '1' })).toEqual({ ...nothing, isChanged: true });
    const [first, second, third] = cursors;
    const before = [first!, { ...second!, seq: 6 }, { ...third!, generation: 1 }];
    expect(await since({}, before)).toEqual({ ...nothing, moved: new Set([1, 2]) });
    expect(await since({}, [first!])).toEqual({ ...nothing, moved: new Set([1, 2]) });
  });
});

test('what Postgres has given the segments is of their generation, and applied', async () => {
  expect(await readGivenUnits(shop.db, [empty, full])).toEqual(
    expect.arrayContaining([
      { saleId: empty, generation: 1, segments: 2, returned: 0, credited: 0, withdrawn: 0 },
      { saleId: full, generation: 3, segments: 2, returned: 3, credited: 1, withdrawn: 16 },
    ]),
  );
  expect(await readBegunUnits(shop.db, [empty, full])).toEqual(
    new Map([
      [empty, { generation: 1, units: STOCK }],
      // The stock with what has gone from the segments since, and without what has come.
      [full, { generation: 3, units: STOCK + 300 - (1 + 2 + 4 + 8) - (1 + 2) + 16 }],
    ]),
  );
  expect(await readBegunUnits(shop.db, [])).toEqual(new Map());
  await shop.db.raw("UPDATE sales SET archived_at = now(), state = 'closed' WHERE id = ?", [empty]);
  expect((await readGivenUnits(shop.db, [empty, full])).map(({ saleId }) => saleId)).toEqual([full]);
  expect([...(await readBegunUnits(shop.db, [empty, full])).keys()]).toEqual([full]);
  await shop.db.raw("UPDATE sales SET archived_at = NULL, state = 'open' WHERE id = ?", [empty]);
});

test('the stock is explained by the ledger and the live orders, or was changed by hand', async () => {
  expect(await isStockExplained(shop.db, empty)).toBe(true);
  expect(await isStockExplained(shop.db, full)).toBe(false);
  await shop.db.raw('UPDATE sales SET stock = ? WHERE id = ?', [STOCK - 33 - 5, full]);
  expect(await isStockExplained(shop.db, full)).toBe(true);
});

describe('the ledger', () => {
  const open = async (saleId: string) =>
    (await readOpenMovements(shop.db, saleId)).map(({ action, units }) => [action, units]);
  const OPEN = MOVEMENTS.filter((row) => row.open).map(({ action, units }) => [action, units]);

  test('has open movements, the oldest first', async () => {
    expect(await open(full)).toEqual(OPEN);
    const [first] = await readOpenMovements(shop.db, full);
    expect(first).toEqual({
      ...{ id: first!.id, saleId: full, action: 'top-up', units: 2, generation: 3 },
      ageS: about(100),
    });
    expect(await open(empty)).toEqual([]);
  });

  test('knows the newest open resize, and how old the oldest is', async () => {
    expect(await readWantedSegments(shop.db, full)).toBe(32);
    expect(await readWantedSegments(shop.db, empty)).toBeUndefined();
    const resizes = await readResizes(shop.db);
    expect(resizes.map(({ saleId }) => saleId).sort()).toEqual([full, other].sort());
    for (const { ageS } of resizes) expect(Math.abs(ageS - 700)).toBeLessThan(AGE_SLACK_S);
  });

  test('closes one movement, once', async () => {
    const [first, second] = await readOpenMovements(shop.db, full);
    const when = () => rows(shop.db, 'SELECT applied_at FROM stock_movements WHERE id = ?', [first!.id]);
    await closeMovement(shop.db, first!.id);
    const closed = await when();
    await closeMovement(shop.db, first!.id);
    expect(await when()).toEqual(closed);
    expect((await readOpenMovements(shop.db, full))[0]).toMatchObject({ id: second!.id });
  });

  test('closes what a new generation includes; a withdrawal is void, and an archival stays open', async () => {
    await shop.db.transaction((trx) => coverMovements(trx, full));
    expect(await open(full)).toEqual([['archive', 0]]);
    const details = await rows<{ action: string; detail: object }>(
      shop.db,
      "SELECT action, detail FROM stock_movements WHERE sale_id = ? AND detail <> '{}' AND action <> 'create' ORDER BY id",
      [full],
    );
    expect(details.map(({ action, detail }) => [action, detail])).toEqual([
      ['withdraw', { wanted: 64, void: true }],
      ['resize', { to: 16 }],
      ['resize', { to: 4 }],
      ['resize', { to: 32 }],
    ]);
    await closeArchive(shop.db, full);
    expect(await open(full)).toEqual([]);
    expect(await open(other)).toEqual(OPEN);
  });
});
