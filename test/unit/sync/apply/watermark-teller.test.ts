import { beforeEach, expect, test } from 'vitest';
import type { OrderLog, Watermark } from '../../../../src/engine/contract.ts';
import { WatermarkTeller } from '../../../../src/sync/apply/watermark-teller.ts';

const mark = (seq: number, segment = 0): Watermark => ({
  saleId: 'sale',
  segment,
  generation: 1,
  seq,
  orders: seq,
  rejected: [{ orderId: `${segment}-${seq}`, reason: 'stock' }],
});

let calls: (readonly Watermark[])[];
let isAway: boolean;
let refusals: unknown[];
let teller: WatermarkTeller;

beforeEach(() => {
  [calls, isAway, refusals] = [[], false, []];
  const advance: OrderLog['advance'] = async (marks) => {
    calls.push(marks);
    if (isAway) throw new Error('the backend can not be reached');
  };
  teller = new WatermarkTeller({ advance } as unknown as OrderLog, (error) => refusals.push(error));
});

test('what the backend did not accept is announced before newer watermarks, once', async () => {
  isAway = true;
  await teller.tell([mark(1)]);
  await teller.tell([mark(1, 1)]);
  expect(refusals.map(String)).toEqual(Array(2).fill('Error: the backend can not be reached'));
  isAway = false;
  await teller.tell([mark(2, 2)]);
  await teller.tell([mark(3, 2)]);
  expect(calls.slice(1)).toEqual([[mark(1), mark(1, 1)], [mark(1), mark(1, 1), mark(2, 2)], [mark(3, 2)]]);
});

test('unannounced watermarks do not pile up: of each segment the newest remains, with all rejections', async () => {
  isAway = true;
  for (const seq of [1, 2, 3]) await teller.tell([mark(seq)]);
  isAway = false;
  await teller.tellAgain();
  const rejected = [1, 2, 3].map((seq) => ({ orderId: `0-${seq}`, reason: 'stock' }));
  expect(calls.at(-1)).toEqual([{ ...mark(3), rejected }]);
});

test('there is nothing to announce again if the backend has accepted all', async () => {
  await teller.tellAgain();
  await teller.tell([mark(1)]);
  await teller.tellAgain();
  expect(calls).toEqual([[mark(1)]]);
});

test('calls follow each other, and `settled` waits for the last one', async () => {
  const ends: (() => void)[] = [];
  const log = { advance: () => new Promise<void>((resolve) => ends.push(resolve)) };
  const slow = new WatermarkTeller(log as unknown as OrderLog, () => {});
  void slow.tell([mark(1)]);
  void slow.tell([mark(2)]);
  let isSettled = false;
  const settled = slow.settled.then(() => {
    isSettled = true;
  });
  await expect.poll(() => ends.length).toBe(1);
  ends[0]!();
  await expect.poll(() => ends.length).toBe(2);
  expect(isSettled).toBe(false);
  ends[1]!();
  await settled;
});
