import { beforeEach, describe, expect, it } from 'vitest';
import { Backpressure } from '../../../src/lib/backpressure.ts';

const MAX_MS = 5_000;
/** After a hint that somebody waits, sync does not yield for this time. */
const AWAITED_MS = 1_000;

let isLoadHigh: boolean;
let backpressure: Backpressure;

beforeEach(() => {
  isLoadHigh = true;
  backpressure = new Backpressure({ isLoadHigh: () => isLoadHigh, maxMs: MAX_MS });
});

describe('sync lets the crowd go first', () => {
  it('while the load is high and nobody waits, until the bound has passed', () => {
    expect(backpressure.mayYield(100)).toBe(true);
    expect(backpressure.mayYield(100 + MAX_MS - 1)).toBe(true);
    expect(backpressure.mayYield(100 + MAX_MS)).toBe(false);
  });

  it('not when there is no crowd, and no longer when it has gone', () => {
    isLoadHigh = false;
    expect(backpressure.mayYield(100)).toBe(false);
    isLoadHigh = true;
    expect(backpressure.mayYield(200)).toBe(true);
    isLoadHigh = false;
    expect(backpressure.mayYield(300)).toBe(false);
  });

  it('not for a while after somebody has waited', () => {
    expect(backpressure.mayYield(100)).toBe(true);
    backpressure.awaited(200);
    expect(backpressure.mayYield(200)).toBe(false);
    backpressure.drained();
    expect(backpressure.mayYield(200 + AWAITED_MS - 1)).toBe(false);
    expect(backpressure.mayYield(200 + AWAITED_MS)).toBe(true);
  });

  it('only again when it has caught up, and then with the whole bound before it', () => {
    backpressure.mayYield(0);
    expect(backpressure.mayYield(MAX_MS)).toBe(false);
    expect(backpressure.mayYield(MAX_MS + 1)).toBe(false);
    backpressure.drained();
    expect(backpressure.mayYield(2 * MAX_MS)).toBe(true);
    expect(backpressure.mayYield(3 * MAX_MS - 1)).toBe(true);
    expect(backpressure.mayYield(3 * MAX_MS)).toBe(false);
  });

  it('never, if it is told so', () => {
    expect(new Backpressure({ isLoadHigh: () => true, maxMs: 0 }).mayYield(100)).toBe(false);
  });
});
