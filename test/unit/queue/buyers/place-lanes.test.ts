/** Places are given in batches, and repeating is safe. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { PlaceLanes } from '../../../../src/queue/buyers/place-lanes.ts';
import type { Place, PlaceWish } from '../../../../src/queue/place.ts';
import { elapse, freezeTime, settledTurns } from '../../../support/engine/frozen-time.ts';

const DEADLINE_MS = 1_000;
const MAX_BATCH = 8;
const MAX_WAITING = 16;
const SALE = 'tickets';

interface Call {
  readonly saleId: string;
  readonly buyers: readonly string[];
  answer(): void;
  fail(error: Error): void;
}

let calls: Call[];
let faults: unknown[];
let numbers: Map<string, number>;
let lanes: PlaceLanes;

const placeOf = (saleId: string, { buyerId, quantity }: PlaceWish): Place => {
  const number = numbers.get(buyerId) ?? numbers.size + 1;
  numbers.set(buyerId, number);
  const none = { reason: undefined, orderId: undefined, offeredUntil: undefined, offeredUnits: undefined };
  return { saleId, number, buyerId, quantity, state: 'waiting', ...none };
};

beforeEach(() => {
  freezeTime();
  [calls, faults, numbers] = [[], [], new Map()];
  lanes = new PlaceLanes({
    give: (saleId, wishes) =>
      new Promise((resolve, fail) => {
        const answer = () => resolve(new Map(wishes.map((wish) => [wish.buyerId, placeOf(saleId, wish)])));
        calls.push({ saleId, buyers: wishes.map(({ buyerId }) => buyerId), answer, fail });
      }),
    deadlineMs: DEADLINE_MS,
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    fault: (error) => faults.push(error),
  });
});
afterEach(() => vi.useRealTimers());

const ask = (buyerId: string, saleId = SALE) => lanes.ask(saleId, { buyerId, quantity: 1 });
const LATE = /timed_out|unavailable/;
const code = (error: unknown) => (error as { code: string }).code;

describe('a lane', () => {
  test('sends all that one turn has read as one batch, each buyer once', async () => {
    const asked = ['ann', 'bob', 'ann'].map((buyer) => ask(buyer));
    await settledTurns();
    expect(calls.map(({ buyers }) => buyers)).toEqual([['ann', 'bob']]);
    calls[0]!.answer();
    expect(await Promise.all(asked)).toMatchObject([{ number: 1 }, { number: 2 }, { number: 1 }]);
  });

  test('has one batch under way; the next one grows meanwhile, and another sale does not wait', async () => {
    const first = ask('ann');
    await settledTurns();
    const later = [ask('bob'), ask('ann'), ask('cid')];
    const other = ask('dan', 'other');
    await settledTurns();
    expect(calls.map(({ buyers }) => buyers)).toEqual([['ann'], ['dan']]);
    calls[1]!.answer();
    calls[0]!.answer();
    await settledTurns();
    expect(calls.at(-1)).toMatchObject({ saleId: SALE, buyers: ['bob', 'ann', 'cid'] });
    calls.at(-1)!.answer();
    await Promise.all([first, ...later, other]);
    expect(await later[1]).toEqual(await first);
  });

  test('puts a bounded number into a batch', async () => {
    const asked = Array.from({ length: MAX_BATCH + 1 }, (_, i) => ask(`buyer-${i}`));
    await settledTurns();
    expect(calls.map(({ buyers }) => buyers.length)).toEqual([MAX_BATCH]);
    calls[0]!.answer();
    await settledTurns();
    expect(calls.map(({ buyers }) => buyers.length)).toEqual([MAX_BATCH, 1]);
    calls[1]!.answer();
    expect(new Set((await Promise.all(asked)).map((given) => (given as Place).number)).size).toBe(
      MAX_BATCH + 1,
    );
  });

  test('takes half of many, and sends the others before these are answered', async () => {
    const sizes: number[] = [];
    const answered: number[] = [];
    const crowd = new PlaceLanes({
      give: async (saleId, wishes) => {
        sizes.push(wishes.length);
        if (sizes.length === 2) expect(answered).toEqual([]);
        return new Map(wishes.map((wish) => [wish.buyerId, placeOf(saleId, wish)]));
      },
      deadlineMs: DEADLINE_MS,
      fault: (error) => faults.push(error),
    });
    const asked = Array.from({ length: 200 }, (_, i) =>
      crowd
        .ask(SALE, { buyerId: `buyer-${i}`, quantity: 1 })
        .then((given) => answered.push((given as Place).number)),
    );
    await settledTurns();
    await Promise.all(asked);
    expect(sizes).toEqual([100, 64, 36]);
    expect(answered).toHaveLength(200);
    expect(faults).toEqual([]);
  });

  test('is busy when too many wait', async () => {
    const first = ask('first');
    await settledTurns();
    const waiting = Array.from({ length: MAX_WAITING }, (_, i) => ask(`buyer-${i}`));
    expect(code(await ask('one more').catch((error) => error))).toBe('busy');
    // One who waits already waits on.
    const again = ask('buyer-1');
    const settled = Promise.allSettled([first, ...waiting, again]);
    await elapse(DEADLINE_MS);
    expect(code((await settled.then((all) => all.at(-1) as PromiseRejectedResult)).reason)).toMatch(LATE);
  });

  test('answers that there is no place', async () => {
    const full = new PlaceLanes({ give: async () => new Map(), deadlineMs: DEADLINE_MS, fault: () => {} });
    expect(await full.ask(SALE, { buyerId: 'ann', quantity: 1 })).toBeUndefined();
  });

  test('answers in time when Postgres does not, and sends nothing for those who have gone', async () => {
    const first = ask('ann').catch(code);
    await elapse(DEADLINE_MS / 2);
    const second = ask('bob').catch(code);
    await elapse(DEADLINE_MS / 2);
    expect(await first).toMatch(LATE);
    calls[0]!.answer();
    await settledTurns();
    expect(calls.map(({ buyers }) => buyers)).toEqual([['ann'], ['bob']]);
    await elapse(DEADLINE_MS);
    expect(await second).toMatch(LATE);
  });

  test('fails those of a batch that failed, and goes on', async () => {
    const first = ask('ann').catch(code);
    await settledTurns();
    calls[0]!.fail(new Error('gone'));
    expect(await first).toBe('unavailable');
    expect(faults).toHaveLength(1);
    const again = ask('ann');
    await settledTurns();
    calls[1]!.answer();
    expect(await again).toMatchObject({ number: 1 });
  });
});
