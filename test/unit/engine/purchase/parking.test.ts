import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PARKED_MAX_MS, Parking } from '../../../../src/engine/purchase/parking.ts';
import { freezeTime } from '../../../support/engine/frozen-time.ts';
import { aLivePurchase } from '../../../support/engine/purchases.ts';

beforeEach(() => freezeTime());
afterEach(() => vi.useRealTimers());

it('is active from its first purchase until it ends, and says once that its time is up', () => {
  const timeUp = vi.fn();
  const parking = new Parking(timeUp);
  expect(parking.isActive).toBe(false);
  const purchases = [aLivePurchase(), aLivePurchase()];
  for (const purchase of purchases) parking.add(purchase);
  expect(parking.isActive).toBe(true);
  vi.advanceTimersByTime(PARKED_MAX_MS - 1);
  expect(timeUp).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(timeUp).toHaveBeenCalledTimes(1);
  expect(parking.end()).toEqual(purchases);
  expect([parking.isActive, parking.size]).toEqual([false, 0]);
});

it('leaves no timer when it ends', () => {
  const parking = new Parking(() => {});
  parking.add(aLivePurchase());
  parking.end();
  expect(vi.getTimerCount()).toBe(0);
});

it('forgets purchases that were answered when the next one comes', () => {
  const parking = new Parking(() => {});
  for (let i = 0; i < 100; i++) {
    const purchase = aLivePurchase();
    parking.add(purchase);
    purchase.expire(true);
  }
  expect(parking.size).toBe(1);
});
