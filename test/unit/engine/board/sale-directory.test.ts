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

beforeEach(async () => {
  freezeTime();
  board = new Board(4);
  const backend = {
    sales: {
      read: async (id: string) => ({ sale: aSale({ id }), state: 'open', generation: 1, epoch: EPOCH }),
    },
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
