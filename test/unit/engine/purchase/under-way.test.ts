import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Outcome, Purchase } from '../../../../src/engine/contract.ts';
import { DEADLINE_SWEEP_MS } from '../../../../src/engine/limits.ts';
import type { LivePurchase } from '../../../../src/engine/purchase/purchase.ts';
import { PurchasesUnderWay } from '../../../../src/engine/purchase/under-way.ts';
import { freezeTime, turn } from '../../../support/engine/frozen-time.ts';
import { aPurchase, codesOf } from '../../../support/engine/purchases.ts';

const LIVES_MS = 100;

let faults: unknown[];
let underWay: PurchasesUnderWay;

beforeEach(() => {
  freezeTime();
  faults = [];
  underWay = new PurchasesUnderWay(LIVES_MS, true, { onFault: (error) => faults.push(error) });
});
afterEach(() => vi.useRealTimers());

function begin(
  spec: Partial<Purchase> = {},
  told: Outcome[] = [],
): LivePurchase & { readonly told: Outcome[] } {
  return Object.assign(
    underWay.begin(aPurchase(spec), (outcome) => told.push(outcome)),
    { told },
  );
}

describe('deadlines', () => {
  it('answer each purchase at its own time, at most one sweep later', () => {
    const early = begin();
    vi.advanceTimersByTime(LIVES_MS / 2);
    const late = begin();
    vi.advanceTimersByTime(LIVES_MS / 2 - 1);
    expect(codesOf([early, late])).toEqual(['waits', 'waits']);
    vi.advanceTimersByTime(1 + DEADLINE_SWEEP_MS);
    expect(codesOf([early, late])).toEqual(['busy', 'waits']);
    vi.advanceTimersByTime(LIVES_MS / 2);
    expect(codesOf([early, late])).toEqual(['busy', 'busy']);
  });

  it.each([
    [true, 'accepted'],
    [false, 'unknown'],
  ])('answer a taken purchase, with a durable log (%s), with %s', (durable, code) => {
    underWay = new PurchasesUnderWay(LIVES_MS, durable, {});
    const purchase = begin();
    purchase.send();
    purchase.take(1, '1001', 1);
    vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
    expect(codesOf([purchase])).toEqual([code]);
  });

  it('ignore purchases that were answered before', () => {
    const purchase = begin();
    purchase.refuse({ code: 'sold_out' });
    vi.advanceTimersByTime(LIVES_MS * 2);
    expect(codesOf([purchase])).toEqual(['sold_out']);
  });

  it('forget purchases that were answered before their time', () => {
    const purchases = [begin(), begin()];
    expect(underWay.size).toBe(2);
    for (const purchase of purchases) purchase.refuse({ code: 'sold_out' });
    expect(underWay.size).toBe(0);
    vi.advanceTimersByTime(DEADLINE_SWEEP_MS);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('need one timer for all purchases, and none without purchases', () => {
    expect(vi.getTimerCount()).toBe(0);
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 3; i++) begin();
      expect(vi.getTimerCount()).toBe(1);
      vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
      expect([vi.getTimerCount(), underWay.size]).toEqual([0, 0]);
    }
  });

  it('also answer a purchase that begins while they answer others', () => {
    const later: ReturnType<typeof begin>[] = [];
    underWay.begin(aPurchase(), () => later.push(begin()));
    vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
    expect(codesOf(later)).toEqual(['waits']);
    vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
    expect(codesOf(later)).toEqual(['busy']);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a caller that throws', () => {
  it('is reported, and the other purchases are answered', async () => {
    const bug = new Error('a bug');
    underWay.begin(aPurchase(), () => {
      throw bug;
    });
    const other = begin();
    vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
    expect(codesOf([other])).toEqual(['busy']);
    expect(faults).toEqual([bug]);
    await underWay.idle();
  });
});

it('is idle when the last one has been answered', async () => {
  await underWay.idle();
  const purchases = [begin(), begin()];
  const idle = vi.fn();
  const waiting = underWay.idle().then(idle);
  purchases[0]!.giveUp();
  await turn();
  expect(idle).not.toHaveBeenCalled();
  purchases[1]!.giveUp();
  await waiting;
  underWay.stop();
  expect(vi.getTimerCount()).toBe(0);
});
