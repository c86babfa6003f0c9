import { beforeEach, describe, expect, it } from 'vitest';
import { Board, NO_SLOT } from '../../../../src/engine/board/board.ts';
import { BoardSlots } from '../../../../src/engine/board/slots.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { settledTurns } from '../../../support/engine/frozen-time.ts';

let board: Board;
let slots: BoardSlots;

beforeEach(() => {
  board = new Board(2);
  slots = new BoardSlots(board);
});

describe('slots of a board', () => {
  it('are each given out once, and then there is none', () => {
    expect([slots.take(), slots.take(), slots.take(), slots.take()]).toEqual([0, 1, NO_SLOT, NO_SLOT]);
    expect(slots.used).toBe(2);
  });

  it('are given out again when all threads have answered, as if they were never used', async () => {
    const slot = slots.take();
    slots.take();
    board.close(slot, 9, monotonicMs());
    let answer = () => {};
    slots.release(slot, new Promise<void>((resolve) => (answer = resolve)));
    await settledTurns();
    expect([slots.take(), slots.used]).toEqual([NO_SLOT, 2]);
    expect(board.isSoldOut(slot)).toBe(true);
    answer();
    await settledTurns();
    expect(slots.used).toBe(1);
    expect([slots.take(), board.epoch(slot), board.isClosed(slot)]).toEqual([slot, 0, false]);
    // An epoch of the new owner counts, although the old one has had greater ones.
    board.close(slot, 1, monotonicMs());
    expect(board.isSoldOut(slot)).toBe(true);
  });

  it('are not given out again if a thread has failed to answer', async () => {
    slots.release(slots.take(), Promise.reject(new Error('a bug')));
    await settledTurns();
    expect([slots.take(), slots.take(), slots.used]).toEqual([1, NO_SLOT, 2]);
  });

  it('are not counted or given out when a sale without a slot leaves', async () => {
    slots.release(NO_SLOT, Promise.resolve());
    await settledTurns();
    expect([slots.take(), slots.used]).toEqual([0, 1]);
  });
});
