/** What a place that waits is told: people ahead, and how long it will take. */
import { describe, expect, test } from 'vitest';
import { isMoving, OfferRate } from '../../../../src/queue/buyers/offer-rate.ts';
import { PeopleAhead } from '../../../../src/queue/buyers/people-ahead.ts';

type Noted = readonly [s: number, offers: number, isMoving?: boolean];
const noted = (samples: readonly Noted[]) => {
  const rate = new OfferRate();
  for (const [s, offers, isMoving = true] of samples) rate.note(s * 1_000, offers, isMoving);
  return rate;
};
const steady = (seconds: number, perSecond: number) =>
  Array.from({ length: seconds + 1 }, (_, s) => [s, s * perSecond] as const);

describe('an estimate', () => {
  test('is left out while too little is known', () => {
    expect(noted([]).until(1)).toBeUndefined();
    expect(noted([[0, 100]]).until(1)).toBeUndefined();
    expect(noted(steady(4, 10)).until(1)).toBeUndefined();
    expect(noted(steady(30, 0)).until(1)).toBeUndefined();
    expect(
      noted([
        [0, 5],
        [30, 6],
      ]).until(1),
    ).toBeUndefined();
  });

  test('goes by the rate, without error if that is steady', () => {
    expect(noted(steady(30, 2)).until(100)).toEqual({ seconds: 50, errorSeconds: 0 });
  });

  test('has an error if offers come in bursts, which grows with the wait', () => {
    const bursts = noted(steady(60, 1).map(([s]) => [s, Math.floor(s / 10) * 10] as const));
    const [near, far] = [bursts.until(10)!, bursts.until(1_000)!];
    expect(near.seconds).toBe(10);
    expect(near.errorSeconds).toBeGreaterThan(5);
    expect(far.errorSeconds).toBeGreaterThan(10 * near.errorSeconds);
  });

  test('goes by the last minute alone', () => {
    const slower = [...steady(60, 10), ...steady(60, 1).map(([s, o]) => [61 + s, 600 + o] as const)];
    expect(noted(slower).until(60)).toEqual({ seconds: 60, errorSeconds: 0 });
  });

  test('leaves out the time before the sale opened, and the time while offers were stopped', () => {
    const still = (from: number, to: number, offers: number) =>
      Array.from({ length: to - from }, (_, i) => [from + i, offers, false] as const);
    const moving = (from: number, offers: number) =>
      steady(10, 2).map(([s, more]) => [from + s, offers + more] as const);
    const opened = [...still(0, 40, 0), ...moving(40, 0)];
    expect(noted(opened).until(100)).toEqual({ seconds: 50, errorSeconds: 0 });
    const stopped = [...opened, ...still(51, 70, 20)];
    expect(noted(stopped).until(100)).toBeUndefined();
    expect(noted([...stopped, ...moving(70, 20)]).until(100)).toEqual({ seconds: 50, errorSeconds: 0 });
  });

  test('counts only the time in which offers are made', () => {
    const open = { state: 'open' } as const;
    const moving = { freeUnits: 0, isStopped: false };
    expect(isMoving(moving, open)).toBe(true);
    expect(isMoving({ ...moving, freeUnits: undefined }, open)).toBe(false);
    expect(isMoving({ ...moving, isStopped: true }, open)).toBe(false);
    expect(isMoving(moving, { state: 'paused' })).toBe(false);
  });

  test('begins anew when the count does', () => {
    expect(noted([...steady(30, 5), [31, 0], [32, 1]]).until(1)).toBeUndefined();
  });
});

describe('people ahead', () => {
  const fifo = { numberAt: (rank: number) => rank };
  const present = (...numbers: number[]) => ({ has: (number: number) => numbers.includes(number) });

  test('are those between head and rank who are present', async () => {
    const ahead = await PeopleAhead.count(2, 8, fifo, present(1, 2, 3, 5, 8));
    expect([1, 2, 3, 4, 5, 6, 7, 8].map((rank) => ahead.of(rank))).toEqual([0, 0, 0, 1, 1, 2, 2, 2]);
  });

  test('are counted by rank, not by number', async () => {
    const drawn = { numberAt: (rank: number) => 5 - rank };
    const ahead = await PeopleAhead.count(0, 4, drawn, present(4, 2));
    expect([1, 2, 3, 4].map((rank) => ahead.of(rank))).toEqual([0, 1, 1, 2]);
  });

  test('include those who came since the count', async () => {
    const ahead = await PeopleAhead.count(0, 3, fifo, present(1));
    expect(ahead.of(4)).toBe(1);
    expect(ahead.of(6)).toBe(3);
    expect((await PeopleAhead.count(5, 5, fifo, present())).of(8)).toBe(2);
  });

  test('are all, where nobody can be absent', () => {
    expect([1, 11, 12].map((rank) => PeopleAhead.everybody(10).of(rank))).toEqual([0, 0, 1]);
  });
});
