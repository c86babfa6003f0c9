/** The directory, which keeps a node's board up to date: its reaction to a lost connection. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Board } from '../../../../src/engine/board/board.ts';
import type { Backend, BackendEvents } from '../../../../src/engine/contract.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { SaleDirectory } from '../../../../src/node/sale-directory.ts';
import { freezeTime } from '../../../support/engine/frozen-time.ts';
import { aSale } from '../../../support/shop/sales.ts';

const EPOCH = 3;

let events: BackendEvents;
let board: Board;
let directory: SaleDirectory;
let reads: number;
/** What a read waits for. */
let answers: Promise<void>;

beforeEach(async () => {
  freezeTime();
  board = new Board(4);
  reads = 0;
  answers = Promise.resolve();
  const backend = {
    sales: {
      read: async (id: string) => {
        reads++;
        await answers;
        return { sale: aSale({ id }), state: 'open', generation: 1, epoch: EPOCH };
      },
    },
    takes: { hint() {} },
    subscribe: async (added: BackendEvents) => {
      events = added;
      return async () => {};
    },
  } as unknown as Backend;
  directory = new SaleDirectory(backend, board, async () => false);
  await directory.start();
});

afterEach(async () => {
  await directory.stop();
  vi.useRealTimers();
});

test('a reconnection reopens all sales on the board, because a backend that lost writes has units again at the old epoch', async () => {
  const slots = [(await directory.lookup('sale-a'))!.slot, (await directory.lookup('sale-b'))!.slot];
  for (const slot of slots) board.close(slot, EPOCH, monotonicMs());
  expect(slots.map((slot) => board.isSoldOut(slot))).toEqual([true, true]);
  events.reconnected!();
  expect(slots.map((slot) => board.isSoldOut(slot))).toEqual([false, false]);
  // Observations from now on count.
  board.close(slots[0]!, EPOCH, monotonicMs());
  expect(slots.map((slot) => board.isSoldOut(slot))).toEqual([true, false]);
});

test('the end of a read leaves alone the one that a change has begun meanwhile', async () => {
  const gates: (() => void)[] = [];
  const nextRead = () => {
    answers = new Promise((resolve) => void gates.push(resolve));
    return directory.refresh('sale-a', 1);
  };
  const first = nextRead();
  events.saleChanged!('sale-a');
  const second = nextRead();
  expect(reads).toBe(2);
  gates[0]!();
  await first;
  await vi.advanceTimersByTimeAsync(1_000);
  const third = directory.refresh('sale-a', 1);
  expect(reads).toBe(2);
  gates[1]!();
  expect(await third).toBe(await second);
});
