import { beforeEach, describe, expect, it } from 'vitest';
import { Backpressure } from '../../../src/lib/backpressure.ts';

const MAX_MS = 5_000;
/** After a hint that a buyer waits, sync does not yield for this time. */
const AWAITED_MS = 1_000;

let isLoadHigh: boolean;
let backpressure: Backpressure;

beforeEach(() => {
  isLoadHigh = true;
  backpressure = new Backpressure({ isLoadHigh: () => isLoadHigh, maxMs: MAX_MS });
});

describe('sync yields to buyers', () => {
  it('while the load is high and no purchase waits, until the limit has passed', () => {
    expect(backpressure.mayYield(100)).toBe(true);
    expect(backpressure.mayYield(100 + MAX_MS - 1)).toBe(true);
    expect(backpressure.mayYield(100 + MAX_MS)).toBe(false);
  });

  it('not while the load is low or has fallen', () => {
    isLoadHigh = false;
    expect(backpressure.mayYield(100)).toBe(false);
    isLoadHigh = true;
    expect(backpressure.mayYield(200)).toBe(true);
    isLoadHigh = false;
    expect(backpressure.mayYield(300)).toBe(false);
  });

  it('not soon after a buyer has waited', () => {
    expect(backpressure.mayYield(100)).toBe(true);
    backpressure.awaited(200);
    expect(backpressure.mayYield(200)).toBe(false);
    backpressure.drained();
    expect(backpressure.mayYield(200 + AWAITED_MS - 1)).toBe(false);
    expect(backpressure.mayYield(200 + AWAITED_MS)).toBe(true);
  });

  it('again only after it has caught up, and then for the whole limit', () => {
    backpressure.mayYield(0);
    expect(backpressure.mayYield(MAX_MS)).toBe(false);
    expect(backpressure.mayYield(MAX_MS + 1)).toBe(false);
    backpressure.drained();
    expect(backpressure.mayYield(2 * MAX_MS)).toBe(true);
    expect(backpressure.mayYield(3 * MAX_MS - 1)).toBe(true);
    expect(backpressure.mayYield(3 * MAX_MS)).toBe(false);
  });

  it('never, with a limit of 0', () => {
    expect(new Backpressure({ isLoadHigh: () => true, maxMs: 0 }).mayYield(100)).toBe(false);
  });
});
