/** What the applier tells of a batch: to the backend, to the sale's log, to the loop, and to those who watch. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Watermark } from '../../../src/engine/contract.ts';
import { takenAtMs } from '../../../src/engine/order-id.ts';
import { Applier, type ApplierOptions } from '../../../src/sync/applier.ts';
import type { Batch } from '../../../src/sync/apply/batch.ts';
import type { WatermarkTeller } from '../../../src/sync/apply/watermark-teller.ts';
import type { HeldSales } from '../../../src/sync/held/held-sales.ts';
import { elapse, freezeTime, settledTurns } from '../../support/engine/frozen-time.ts';

const NOW_MS = Date.UTC(2026, 5, 1);
const FIRST = '4294967296000';

let statements: { resolve(): void; reject(error: Error): void }[];
let logs: Map<string, { reading: unknown; applied: unknown }>;
let calls: unknown[][];
let announced: string[];
let watched: boolean;

beforeEach(() => {
  freezeTime(NOW_MS);
  [statements, logs, calls, announced, watched] = [[], new Map(), [], [], true];
  for (const saleId of ['a', 'b', 'c']) hold(saleId);
});

afterEach(() => void vi.useRealTimers());

const call =
  (name: string) =>
  (...args: unknown[]) =>
    void calls.push([name, ...args]);

function hold(saleId: string): void {
  logs.set(saleId, { reading: call(`reading ${saleId}`), applied: call(`applied ${saleId}`) });
}

function anApplier(batchRows = 100): Applier {
  const raw = () => new Promise<void>((resolve, reject) => statements.push({ resolve, reject }));
  const events = { applied: call('applied'), ...(watched && { committed: call('committed') }) };
  const sales = { held: (saleId: string) => logs.get(saleId), release: async () => call('release')() };
  const tell = async (marks: readonly Watermark[]) => {
    announced.push(marks.map(({ saleId, seq }) => `${saleId}${seq}`).join(' '));
  };
  return new Applier(
    { db: { raw }, events, batchRows } as unknown as ApplierOptions,
    { tell } as unknown as WatermarkTeller,
    sales as unknown as HeldSales,
    call('ended'),
  );
}

/** A batch with two entries of each sale, up to `seq`. */
function batchOf(saleIds: readonly string[], seq = 2, orders = 50): Batch {
  const slices = saleIds.map((saleId) => {
    const place = { saleId, segment: 0, generation: 1 };
    const entries = [seq - 1, seq].map((at) => ({
      ...{ seq: at, tail: FIRST, previous: '', ordersSoFar: at * 10 },
      orders: [{ orderId: FIRST, buyerId: 'buyer', quantity: 1, key: '' }],
    }));
    return {
      from: { ...place, seq: seq - 2, tail: '' },
      to: { ...place, seq, tail: FIRST },
      entries,
      units: 2,
    };
  });
  return { slices, orders };
}

test('the log hears what is read and what is applied, and others hear of the transaction', async () => {
  const applier = anApplier();
  const batch = batchOf(['a']);
  const { to } = batch.slices[0]!;
  await applier.begin(batch);
  expect(calls).toEqual([['reading a', to]]);
  vi.advanceTimersByTime(7);
  statements[0]!.resolve();
  await applier.settled();
  const oldestMs = NOW_MS + 7 - takenAtMs(FIRST);
  expect(calls.slice(1)).toEqual([
    ['applied a', to, 20],
    ['applied', { orders: 50, oldestMs, tookMs: expect.closeTo(7) }],
    ['committed', { ...batch, beganMs: expect.any(Number), rejected: new Map() }],
    ['ended'],
  ]);
  expect(announced).toEqual(['a2']);
});

test('nobody has to follow single orders', async () => {
  watched = false;
  const applier = anApplier();
  await applier.begin(batchOf(['a']));
  statements[0]!.resolve();
  await applier.settled();
  expect(announced).toEqual(['a2']);
});

describe('a sale that was released while its batch was applied', () => {
  test.each([
    ['is not announced: the sync that takes it next does it', () => logs.delete('a')],
    ['nor is one that was taken again since', () => hold('a')],
  ])('%s', async (_, happen) => {
    const applier = anApplier();
    await applier.begin(batchOf(['a', 'b']));
    happen();
    statements[0]!.resolve();
    await applier.settled();
    expect(announced).toEqual(['b2']);
  });

  test('nor is it if it was released before', async () => {
    logs.delete('a');
    const applier = anApplier();
    await applier.begin(batchOf(['a']));
    statements[0]!.resolve();
    await applier.settled();
    expect(() => applier.throwFailure()).not.toThrow();
  });
});

describe('a second batch that ends first is announced', () => {
  async function twoBatches(first: string[], second: string[]): Promise<Applier> {
    const applier = anApplier();
    await applier.begin(batchOf(first));
    void applier.begin(batchOf(second, 4));
    statements[1]!.resolve();
    await settledTurns();
    return applier;
  }

  test.each([
    ['after the first one if they share a sale', ['a', 'b'], ['b', 'c'], ['a2 b2', 'b4 c4']],
    ['at once if they share none', ['a'], ['b'], ['b4', 'a2']],
  ])('%s', async (_, first, second, order) => {
    const applier = await twoBatches(first, second);
    statements[0]!.resolve();
    await applier.settled();
    expect(announced).toEqual(order);
  });

  test('not at all if the first one fails', async () => {
    const applier = await twoBatches(['a'], ['a']);
    const failure = new Error('the server has gone');
    statements[0]!.reject(failure);
    await applier.settled();
    expect(announced).toEqual([]);
    expect(() => applier.throwFailure()).toThrow(failure);
    await applier.abandon();
    expect(() => applier.throwFailure()).not.toThrow();
    expect(calls.filter(([name]) => name === 'ended')).toHaveLength(2);
  });
});

test('the first failure is the failure of the loop', async () => {
  const applier = anApplier();
  await applier.begin(batchOf(['a']));
  void applier.begin(batchOf(['b']));
  for (const name of ['first', 'second']) {
    statements[name === 'first' ? 1 : 0]!.reject(new Error(name));
    await settledTurns();
  }
  expect(() => applier.throwFailure()).toThrow('first');
});

test.each([
  [100, 5],
  [4_000, 200],
  [100_000, 200],
])(
  'of %i orders at most, %i are a large batch, beside which the next may start at once',
  async (rows, large) => {
    const hasTurn = async (orders: number) => {
      let isNext = false;
      void anApplier(rows)
        .begin(batchOf(['a'], 2, orders))
        .then(() => {
          isNext = true;
        });
      await settledTurns();
      return isNext;
    };
    expect([await hasTurn(large - 1), await hasTurn(large)]).toEqual([false, true]);
  },
);

test('a small batch lets the next one start after 20 ms', async () => {
  let isNext = false;
  void anApplier()
    .begin(batchOf(['a'], 2, 1))
    .then(() => {
      isNext = true;
    });
  await elapse(19);
  expect(isNext).toBe(false);
  await elapse(1);
  expect(isNext).toBe(true);
});
