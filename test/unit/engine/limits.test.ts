/** Limits that must fit each other. */
import { expect, test } from 'vitest';
import { BOARD_POLL_MS, BOARD_REPAIR_MS } from '../../../src/engine/limits.ts';
import { HOLD_MAX_MS } from '../../../src/engine/locked/segment-hold.ts';
import { KEEP_MAX_MS } from '../../../src/locks/lock-limits.ts';

test('the board is confirmed three times within the age that its answers may have', () => {
  expect(BOARD_POLL_MS * 3).toBeLessThanOrEqual(BOARD_REPAIR_MS);
});

test('a segment is held at least as long as a lock may be kept', () => {
  expect(HOLD_MAX_MS).toBeGreaterThanOrEqual(KEEP_MAX_MS);
});
