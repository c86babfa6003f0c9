import { beforeEach, describe, expect, it } from 'vitest';
import { Yielding } from '../../../src/lib/backpressure.ts';

const MAX_MS = 5_000;
/** After a hint that somebody waits, sync does not yield for this time. */
const AWAITED_MS = 1_000;

let crowded: boolean;
let yielding: Yielding;

beforeEach(() => {
  crowded = true;
  yielding = new Yielding({ isCrowded: () => crowded, maxMs: MAX_MS });
});

describe('sync lets the crowd go first', () => {
  it('while the node is crowded and nobody waits, until the bound has passed', () => {
    expect(yielding.mayYield(100)).toBe(true);
    expect(yielding.mayYield(100 + MAX_MS - 1)).toBe(true);
    expect(yielding.mayYield(100 + MAX_MS)).toBe(false);
  });

  it('not when there is no crowd, and no longer when it has gone', () => {
    crowded = false;
    expect(yielding.mayYield(100)).toBe(false);
    crowded = true;
    expect(yielding.mayYield(200)).toBe(true);
    crowded = false;
    expect(yielding.mayYield(300)).toBe(false);
  });

  it('not for a while after somebody has waited', () => {
    expect(yielding.mayYield(100)).toBe(true);
    yielding.awaited(200);
    expect(yielding.mayYield(200)).toBe(false);
    yielding.drained();
    expect(yielding.mayYield(200 + AWAITED_MS - 1)).toBe(false);
    expect(yielding.mayYield(200 + AWAITED_MS)).toBe(true);
  });

  it('only again when it has caught up, and then with the whole bound before it', () => {
    yielding.mayYield(0);
    expect(yielding.mayYield(MAX_MS)).toBe(false);
    expect(yielding.mayYield(MAX_MS + 1)).toBe(false);
    yielding.drained();
    expect(yielding.mayYield(2 * MAX_MS)).toBe(true);
    expect(yielding.mayYield(3 * MAX_MS - 1)).toBe(true);
    expect(yielding.mayYield(3 * MAX_MS)).toBe(false);
  });

  it('never, if it is told so', () => {
    expect(new Yielding({ isCrowded: () => true, maxMs: 0 }).mayYield(100)).toBe(false);
  });
});
