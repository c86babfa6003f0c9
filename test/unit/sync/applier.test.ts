/** The applier's reaction when Postgres reports that a cursor has moved. The test ends each of two concurrent statements. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Watermark } from '../../../src/engine/contract.ts';
import { takenAtMs } from '../../../src/engine/order-id.ts';
import { Applier, type ApplierOptions } from '../../../src/sync/applier.ts';
import type { Batch } from '../../../src/sync/apply/batch.ts';
import type { WatermarkTeller } from '../../../src/sync/apply/watermark-teller.ts';
import type { HeldSales } from '../../../src/sync/held/held-sales.ts';

const SALE = 'sale';
const CURSOR_MOVED = Object.assign(new Error('1 of 1 cursors were elsewhere'), { code: 'SK001' });

const tailAt = (seq: number) => String(4_294_967_296 * 1_000 + seq);

/** Orders of a large batch, if a batch may have BATCH_ROWS. */
const LARGE = 5;
const BATCH_ROWS = 100;

function batchAt(seq: number, orders = 1): Batch {
  const place = { saleId: SALE, segment: 0, generation: 1 };
  const order = { orderId: tailAt(seq), buyerId: `buyer-${seq}`, quantity: 1, key: '' };
  const entry = { seq, tail: tailAt(seq), previous: tailAt(seq - 1), ordersSoFar: seq, orders: [order] };
  const [from, to] = [seq - 1, seq].map((at) => ({ ...place, seq: at, tail: tailAt(at) }));
  return { slices: [{ from, to, entries: [entry], units: 1 }], orders } as unknown as Batch;
}

interface Statement {
  resolve(): void;
  reject(error: Error): void;
}

/** An applier, and the statements that it has sent; each is answered by hand. */
function begun() {
  const statements: Statement[] = [];
  const released: string[] = [];
  const announced: number[] = [];
  const applied: { readonly oldestMs: number }[] = [];
  const log = { reading() {}, applied() {} };
  const db = {
    raw: () => new Promise<void>((resolve, reject) => void statements.push({ resolve, reject })),
  };
  const sales = {
    held: () => log,
    async release(ids: Iterable<string>) {
      released.push(...ids);
    },
  };
  const teller = {
    async tell(marks: readonly Watermark[]) {
      announced.push(...marks.map(({ seq }) => seq));
    },
  };
  const applier = new Applier(
    {
      db,
      events: { applied: (batch: (typeof applied)[number]) => void applied.push(batch) },
      batchRows: BATCH_ROWS,
    } as unknown as ApplierOptions,
    teller as unknown as WatermarkTeller,
    sales as unknown as HeldSales,
    () => {},
  );
  return { applier, statements, released, announced, applied };
}

/** Whether another batch may start: what `begin` has returned is resolved. */
function turnOf(begun: Promise<void>) {
  const turn = { hasCome: false };
  void begun.then(() => {
    turn.hasCome = true;
  });
  return turn;
}

test('the lag is that of the oldest order, whichever sale it is of', async () => {
  const { applier, statements, applied } = begun();
  const [newer, older] = [batchAt(4_294_967_296 * 2), batchAt(1)];
  void applier.begin({ slices: [...newer.slices, ...older.slices], orders: 2 });
  statements[0]!.resolve();
  await applier.settled();
  expect(applied[0]!.oldestMs).toBeCloseTo(Date.now() - takenAtMs(tailAt(1)), -3);
});

test('another sync has applied a batch: the sale is released, and the loop does not fail', async () => {
  const { applier, statements, released, announced } = begun();
  void applier.begin(batchAt(1));
  statements[0]!.reject(CURSOR_MOVED);
  await applier.settled();
  expect(released).toEqual([SALE]);
  expect(announced).toEqual([]);
  expect(() => applier.throwFailure()).not.toThrow();
});

test('a batch that came before the commit of its predecessor is tried again, and the sale is not released', async () => {
  const { applier, statements, released, announced } = begun();
  await applier.begin(batchAt(1, LARGE));
  const second = applier.begin(batchAt(2, LARGE));
  statements[1]!.reject(CURSOR_MOVED);
  statements[0]!.resolve();
  await second;
  await expect.poll(() => statements.length).toBe(3);
  statements[2]!.resolve();
  await applier.settled();
  expect(announced).toEqual([1, 2]);
  expect(released).toEqual([]);
});

test('beside a large batch a second one may start, and no third one', async () => {
  const { applier, statements } = begun();
  await applier.begin(batchAt(1, LARGE));
  const third = turnOf(applier.begin(batchAt(2, LARGE)));
  await nextTurn();
  expect(third.hasCome).toBe(false);
  statements[0]!.resolve();
  await expect.poll(() => third.hasCome).toBe(true);
});

describe('after a small batch the next one starts', () => {
  test('when all before it have ended', async () => {
    const { applier, statements } = begun();
    await applier.begin(batchAt(1, LARGE));
    const third = turnOf(applier.begin(batchAt(2, LARGE - 1)));
    statements[0]!.resolve();
    await nextTurn();
    expect(third.hasCome).toBe(false);
    statements[1]!.resolve();
    await nextTurn();
    expect(third.hasCome).toBe(true);
  });

  test('after a while, if somebody else has locked its rows', async () => {
    const { applier, statements } = begun();
    const second = turnOf(applier.begin(batchAt(1)));
    await nextTurn();
    expect(second.hasCome).toBe(false);
    await expect.poll(() => second.hasCome).toBe(true);
    const third = turnOf(applier.begin(batchAt(2)));
    await nextTurn();
    expect(third.hasCome).toBe(false);
    statements[0]!.resolve();
    await expect.poll(() => third.hasCome).toBe(true);
  });
});

test('a failure of the database is the failure of the loop', async () => {
  const { applier, statements, released } = begun();
  void applier.begin(batchAt(1));
  const failure = new Error('the server has gone');
  statements[0]!.reject(failure);
  await applier.settled();
  expect(() => applier.throwFailure()).toThrow(failure);
  expect(released).toEqual([]);
});
