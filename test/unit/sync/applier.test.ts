/** The applier's reaction when Postgres reports that a cursor has moved. The test ends each of two concurrent statements. */
import { expect, test } from 'vitest';
import type { Watermark } from '../../../src/engine/contract.ts';
import { Applier } from '../../../src/sync/applier.ts';
import type { Batch } from '../../../src/sync/apply/batch.ts';
import type { WatermarkTeller } from '../../../src/sync/apply/watermark-teller.ts';
import type { HeldSales } from '../../../src/sync/held-sales.ts';
import type { SyncStores } from '../../../src/sync/sync-stores.ts';

const SALE = 'sale';
const CURSOR_MOVED = Object.assign(new Error('1 of 1 cursors were elsewhere'), { code: 'SK001' });

const tailAt = (seq: number) => String(4_294_967_296 * 1_000 + seq);

function batchAt(seq: number): Batch {
  const place = { saleId: SALE, segment: 0, generation: 1 };
  const order = { orderId: tailAt(seq), buyerId: `buyer-${seq}`, quantity: 1, key: '' };
  const entry = { seq, tail: tailAt(seq), previous: tailAt(seq - 1), ordersSoFar: seq, orders: [order] };
  const [from, to] = [seq - 1, seq].map((at) => ({ ...place, seq: at, tail: tailAt(at) }));
  return { slices: [{ from, to, entries: [entry], units: 1 }], orders: 1 } as unknown as Batch;
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
    { db, events: { applied() {} } } as unknown as SyncStores,
    teller as unknown as WatermarkTeller,
    sales as unknown as HeldSales,
    () => {},
  );
  return { applier, statements, released, announced };
}

test('another sync has applied a batch: the sale is released, and the loop does not fail', async () => {
  const { applier, statements, released, announced } = begun();
  await applier.begin(batchAt(1));
  statements[0]!.reject(CURSOR_MOVED);
  await applier.settled();
  expect(released).toEqual([SALE]);
  expect(announced).toEqual([]);
  expect(() => applier.throwFailure()).not.toThrow();
});

test('a batch that came before the commit of its predecessor is tried again, and the sale is not released', async () => {
  const { applier, statements, released, announced } = begun();
  await applier.begin(batchAt(1));
  const second = applier.begin(batchAt(2));
  statements[1]!.reject(CURSOR_MOVED);
  statements[0]!.resolve();
  await second;
  await expect.poll(() => statements.length).toBe(3);
  statements[2]!.resolve();
  await applier.settled();
  expect(announced).toEqual([1, 2]);
  expect(released).toEqual([]);
});

test('a failure of the database is the failure of the loop', async () => {
  const { applier, statements, released } = begun();
  await applier.begin(batchAt(1));
  const failure = new Error('the server has gone');
  statements[0]!.reject(failure);
  await applier.settled();
  expect(() => applier.throwFailure()).toThrow(failure);
  expect(released).toEqual([]);
});
