import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Purchase } from '../../../../src/engine/contract.ts';
import { DEADLINE_SWEEP_MS } from '../../../../src/engine/limits.ts';
import { Deadlines } from '../../../../src/engine/purchase/deadlines.ts';
import type { Phase } from '../../../../src/engine/purchase/pending.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { freezeTime } from '../../../support/engine/frozen-time.ts';
import { aPending, codesOf, type ToldPending } from '../../../support/engine/purchases.ts';

const LIVES_MS = 100;

beforeEach(() => freezeTime());
afterEach(() => vi.useRealTimers());

function add(deadlines: Deadlines, spec: Partial<Purchase> = {}): ToldPending {
  const pending = aPending(spec, monotonicMs() + LIVES_MS);
  deadlines.add(pending);
  return pending;
}

describe('a purchase whose time is up', () => {
  it.each<[Phase, boolean, string]>([
    ['queued', true, 'busy'],
    ['queued', false, 'busy'],
    ['parked', true, 'unavailable'],
    ['parked', false, 'unavailable'],
    ['sent', true, 'unknown'],
    ['sent', false, 'unknown'],
    ['taken', true, 'accepted'],
    ['taken', false, 'unknown'],
  ])('was %s, in a log that is durable: %s, and is told %s', (phase, durable, code) => {
    const pending = add(new Deadlines(durable));
    pending.phase = phase;
    vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
    expect(codesOf([pending])).toEqual([code]);
  });

  it('is told which order was accepted', () => {
    const pending = add(new Deadlines(true), { quantity: 2 });
    Object.assign(pending, { phase: 'taken', orderId: '1001' });
    vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
    expect(pending.told).toEqual([{ code: 'accepted', orderId: '1001', quantity: 2 }]);
  });

  it('is told at its deadline, or one sweep later, and not before', () => {
    const pending = add(new Deadlines(true));
    vi.advanceTimersByTime(LIVES_MS - 1);
    expect(codesOf([pending])).toEqual(['waits']);
    vi.advanceTimersByTime(1 + DEADLINE_SWEEP_MS);
    expect(codesOf([pending])).toEqual(['busy']);
  });
});

describe('deadlines', () => {
  it('end each purchase at its own time', () => {
    const deadlines = new Deadlines(true);
    const early = add(deadlines);
    vi.advanceTimersByTime(LIVES_MS / 2);
    const late = add(deadlines);
    vi.advanceTimersByTime(LIVES_MS / 2 + DEADLINE_SWEEP_MS);
    expect(codesOf([early, late])).toEqual(['busy', 'waits']);
    vi.advanceTimersByTime(LIVES_MS / 2);
    expect(codesOf([early, late])).toEqual(['busy', 'busy']);
  });

  it('say nothing to who was answered before', () => {
    const deadlines = new Deadlines(true);
    const pending = add(deadlines);
    pending.settle({ code: 'sold_out' });
    vi.advanceTimersByTime(LIVES_MS * 2);
    expect(codesOf([pending])).toEqual(['sold_out']);
  });

  it('let go of those who were answered, though their time is not up', () => {
    const deadlines = new Deadlines(true);
    const pendings = [add(deadlines), add(deadlines)];
    expect(deadlines.size).toBe(2);
    for (const pending of pendings) deadlines.remove(pending);
    expect(deadlines.size).toBe(0);
    vi.advanceTimersByTime(DEADLINE_SWEEP_MS);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('need no timer while nobody waits, and one for all who do', () => {
    const deadlines = new Deadlines(true);
    expect(vi.getTimerCount()).toBe(0);
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 3; i++) add(deadlines);
      expect(vi.getTimerCount()).toBe(1);
      vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
      expect([vi.getTimerCount(), deadlines.size]).toEqual([0, 0]);
    }
  });

  it('end what is added while they end others', () => {
    const deadlines = new Deadlines(true);
    const later: ToldPending[] = [];
    const first = add(deadlines);
    const settle = first.settle.bind(first);
    first.settle = (outcome) => {
      settle(outcome);
      later.push(add(deadlines));
    };
    vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
    expect(codesOf(later)).toEqual(['waits']);
    vi.advanceTimersByTime(LIVES_MS + DEADLINE_SWEEP_MS);
    expect(codesOf(later)).toEqual(['busy']);
    expect(vi.getTimerCount()).toBe(0);
  });
});
