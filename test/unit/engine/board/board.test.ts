import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Board, NO_SLOT } from '../../../../src/engine/board/board.ts';
import { BOARD_POLL_MS, BOARD_REPAIR_MS } from '../../../../src/engine/limits.ts';

let now = 0;
vi.mock('../../../../src/lib/monotonic.ts', () => ({ monotonicMs: () => now }));

const SLOT = 1;

/** The uptimes around which a clock of 32 bits changes its sign, or wraps. */
const SIGN_CHANGES = 2 ** 31;
const WRAPS = 2 ** 32;

describe.each([
  ['soon after the start', 5_000],
  ['when 32-bit milliseconds change their sign', SIGN_CHANGES - 40],
  ['when they wrap', WRAPS - 40],
  ['after years', 3 * WRAPS + 12_345],
])('the board, %s,', (_, start) => {
  let board: Board;

  beforeEach(() => {
    now = start + 0.75;
    board = new Board(3);
  });

  it('has nothing sold out at first', () => {
    expect([0, 1, 2].map((slot) => board.isSoldOut(slot))).toEqual([false, false, false]);
    expect(board.isClosed(SLOT)).toBe(false);
    expect(board.epoch(SLOT)).toBe(0);
  });

  it('closes one sale and no other', () => {
    board.close(SLOT, 4, now);
    expect([0, 1, 2].map((slot) => board.isSoldOut(slot))).toEqual([false, true, false]);
    expect([0, 1, 2].map((slot) => board.isClosed(slot))).toEqual([false, true, false]);
    expect(board.epoch(SLOT)).toBe(4);
  });

  it('is reopened by a newer epoch', () => {
    board.close(SLOT, 4, now);
    board.learn(SLOT, 5, now);
    expect(board.isSoldOut(SLOT)).toBe(false);
    expect(board.isClosed(SLOT)).toBe(false);
    expect(board.epoch(SLOT)).toBe(5);
  });

  it('is not closed by an observation of an older epoch', () => {
    board.learn(SLOT, 5, now);
    board.close(SLOT, 4, now);
    expect(board.isSoldOut(SLOT)).toBe(false);
    board.close(SLOT, 5, now);
    board.close(SLOT, 4, now);
    expect(board.isSoldOut(SLOT)).toBe(true);
  });

  it('is not reopened by an older epoch that arrives late', () => {
    board.close(SLOT, 5, now);
    board.learn(SLOT, 4, now);
    expect(board.isSoldOut(SLOT)).toBe(true);
    expect(board.epoch(SLOT)).toBe(5);
  });

  it('answers for the repair interval after a confirmation, and not longer', () => {
    board.close(SLOT, 4, now);
    now += BOARD_REPAIR_MS;
    expect(board.isSoldOut(SLOT)).toBe(true);
    now += 1;
    expect(board.isSoldOut(SLOT)).toBe(false);
    // It is still polled: it was never seen open again.
    expect(board.isClosed(SLOT)).toBe(true);
  });

  it('keeps answering while it is confirmed', () => {
    board.close(SLOT, 4, now);
    for (let polls = 0; polls < 20; polls++) {
      now += BOARD_POLL_MS;
      board.learn(SLOT, 4, now);
      expect(board.isSoldOut(SLOT)).toBe(true);
    }
  });

  it('survives two confirmations that are lost in a row', () => {
    board.close(SLOT, 4, now);
    now += 3 * BOARD_POLL_MS;
    expect(board.isSoldOut(SLOT)).toBe(true);
  });

  it('counts the age of a confirmation from before the query, not from its reply', () => {
    board.close(SLOT, 4, now);
    const asked = now;
    now += BOARD_REPAIR_MS + 50;
    board.learn(SLOT, 4, asked);
    expect(board.isSoldOut(SLOT)).toBe(false);
    board.learn(SLOT, 4, now);
    expect(board.isSoldOut(SLOT)).toBe(true);
  });

  it('is not confirmed by another epoch', () => {
    board.close(SLOT, 4, now);
    now += BOARD_REPAIR_MS + 1;
    board.learn(SLOT, 3, now);
    expect(board.isSoldOut(SLOT)).toBe(false);
  });

  it('forgets sold-out sales when it reopens all, and is closed again by new observations', () => {
    for (const slot of [0, SLOT]) board.close(slot, 4, now);
    board.reopenAll();
    for (const slot of [0, SLOT])
      expect([board.isSoldOut(slot), board.isClosed(slot)]).toEqual([false, false]);
    expect(board.epoch(SLOT)).toBe(4);
    board.close(SLOT, 4, now);
    expect(board.isSoldOut(SLOT)).toBe(true);
  });

  it.each([0, SLOT, 2])('forgets all of slot %i when it is cleared, and nothing of the others', (cleared) => {
    for (const slot of [0, 1, 2]) board.close(slot, 4, now);
    board.clear(cleared);
    expect([0, 1, 2].map((slot) => board.epoch(slot))).toEqual(
      [0, 1, 2].map((slot) => (slot === cleared ? 0 : 4)),
    );
    expect([0, 1, 2].map((slot) => board.isSoldOut(slot))).toEqual([0, 1, 2].map((slot) => slot !== cleared));
    board.close(cleared, 1, now);
    expect(board.isSoldOut(cleared)).toBe(true);
  });

  it('is one board for all threads that share its memory', () => {
    const other = new Board(board.buffer);
    expect(other.capacity).toBe(3);
    board.close(SLOT, 4, now);
    expect(other.isSoldOut(SLOT)).toBe(true);
    other.learn(SLOT, 5, now);
    expect(board.isSoldOut(SLOT)).toBe(false);
    board.close(SLOT, 4, now);
    other.close(SLOT, 5, now);
    expect([board, other].map((each) => each.isSoldOut(SLOT))).toEqual([true, true]);
  });

  it('never calls a sale without a slot sold out', () => {
    board.close(NO_SLOT, 4, now);
    board.learn(NO_SLOT, 5, now);
    expect([board.isSoldOut(NO_SLOT), board.isClosed(NO_SLOT), board.epoch(NO_SLOT)]).toEqual([
      false,
      false,
      0,
    ]);
    expect([0, 1, 2].map((slot) => board.epoch(slot))).toEqual([0, 0, 0]);
  });
});
