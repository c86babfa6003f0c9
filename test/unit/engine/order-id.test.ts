import { describe, expect, it } from 'vitest';
import {
  firstIdAt,
  isOrderId,
  MAX_WORKER_NUMBERS,
  ORDER_ID_EPOCH_MS,
  OrderIds,
  takenAtMs,
} from '../../../src/engine/order-id.ts';

const key = new Uint8Array(32).map((_, i) => i * 7 + 1);
const start = Date.UTC(2026, 10, 27, 20, 0, 0);

/** A clock that only the test moves. */
function aClock(ms = start) {
  const clock = { ms, now: () => clock.ms };
  return clock;
}

const low = (orderId: string) => Number(BigInt(orderId) & 0xffff_ffffn);
const many = <T>(count: number, make: () => T) => Array.from({ length: count }, make);

describe('order ids', () => {
  it('never repeat, over two workers and several seconds', () => {
    const clock = aClock();
    const workers = [1, 2].map((worker) => new OrderIds({ key, worker, now: clock.now }));
    const ids = new Set<string>();
    for (let second = 0; second < 5; second++) {
      for (let i = 0; i < 20_000; i++) for (const worker of workers) ids.add(worker.next());
      clock.ms += 1_000;
    }
    expect(ids.size).toBe(200_000);
  });

  it('never repeat in their low bits within a second, over all workers: the mapping is one to one', () => {
    const seen = new Set<number>();
    const numbers = [0, 1, 2, 255, 256, 4094, MAX_WORKER_NUMBERS - 1];
    for (const worker of numbers) {
      const ids = new OrderIds({ key, worker, now: () => start });
      for (let i = 0; i < 20_000; i++) seen.add(low(ids.next()));
    }
    expect(seen.size).toBe(numbers.length * 20_000);
  });

  it('rise from second to second, as numbers', () => {
    const clock = aClock();
    const ids = new OrderIds({ key, worker: 9, now: clock.now });
    let last = -1n;
    for (let second = 0; second < 50; second++) {
      const ofThisSecond = many(20, () => BigInt(ids.next()));
      for (const id of ofThisSecond) expect(id).toBeGreaterThan(last);
      last = ofThisSecond.sort((a, b) => Number(a - b)).at(-1)!;
      clock.ms += 1_000;
    }
  });

  it('contain the time of the take, to the second', () => {
    const clock = aClock(start + 789);
    const ids = new OrderIds({ key, worker: 3, now: clock.now });
    expect(takenAtMs(ids.next())).toBe(start);
    clock.ms = ORDER_ID_EPOCH_MS;
    expect(takenAtMs(new OrderIds({ key, worker: 3, now: clock.now }).next())).toBe(ORDER_ID_EPOCH_MS);
  });

  it('continue in the same second when the clock steps back', () => {
    const clock = aClock();
    const ids = new OrderIds({ key, worker: 3, now: clock.now });
    const before = many(1_000, () => ids.next());
    clock.ms -= 60_000;
    const after = many(1_000, () => ids.next());
    expect(new Set([...before, ...after]).size).toBe(2_000);
    expect(new Set(after.map(takenAtMs))).toEqual(new Set([start]));
    clock.ms = start + 1_000;
    expect(takenAtMs(ids.next())).toBe(start + 1_000);
  });

  it('use the next second when one worker has used all counters of a second', () => {
    const clock = aClock();
    const ids = new OrderIds({ key, worker: 3, now: clock.now });
    const perSecond = 2 ** 20;
    const seen = new Uint32Array(perSecond);
    for (let i = 0; i < perSecond; i++) seen[i] = low(ids.next());
    // A set of a million numbers would take several times as long.
    const repeated = seen.sort().filter((bits, i) => i > 0 && bits === seen[i - 1]);
    expect(repeated).toHaveLength(0);
    const borrowed = ids.next();
    expect(takenAtMs(borrowed)).toBe(start + 1_000);
    // When that second comes, the counter continues: no value is used twice.
    clock.ms += 1_000;
    const next = ids.next();
    expect(takenAtMs(next)).toBe(start + 1_000);
    expect(next).not.toBe(borrowed);
  });

  it('fit 63 bits until 2090, and are plain decimal numbers', () => {
    const lastSecond = ORDER_ID_EPOCH_MS + (2 ** 31 - 1) * 1_000;
    const ids = new OrderIds({ key, worker: MAX_WORKER_NUMBERS - 1, now: () => lastSecond });
    for (const id of many(1_000, () => ids.next())) {
      expect(id).toMatch(/^[1-9]\d*$/);
      expect(BigInt(id)).toBeLessThan(2n ** 63n);
    }
    expect(new Date(lastSecond).getUTCFullYear()).toBe(2090);
  });

  it('are the same on every node that has the key, and others under another key', () => {
    const make = (secret: Uint8Array) => new OrderIds({ key: secret, worker: 5, now: () => start }).next();
    expect(make(key)).toBe(make(new Uint8Array(key)));
    expect(make(key)).not.toBe(make(new Uint8Array(32)));
  });

  it.each([-1, MAX_WORKER_NUMBERS, 1.5, Number.NaN])('are refused to worker number %d', (worker) => {
    expect(() => new OrderIds({ key, worker })).toThrow(RangeError);
  });

  it.each([0, 16, 31, 33])('are refused under a key of %i bytes', (length) => {
    expect(() => new OrderIds({ key: new Uint8Array(length), worker: 1 })).toThrow(RangeError);
  });
});

describe('the volume is not visible', () => {
  /** Pearson's chi-square of counts that should be equal. */
  const chiSquare = (counts: number[]) => {
    const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length;
    return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  };
  const histogram = (values: number[], bits: number, shift: number) => {
    const counts = new Array<number>(2 ** bits).fill(0);
    for (const value of values) counts[(value >>> shift) & (2 ** bits - 1)]! += 1;
    return counts;
  };
  /** With 255 degrees of freedom a fair source exceeds this once in some ten million trials. */
  const bound = 384;

  it.each([0, 8, 16, 24])('in bits %i and up of consecutive ids, which are spread evenly', (shift) => {
    const ids = new OrderIds({ key, worker: 1, now: () => start });
    const values = many(50_000, () => low(ids.next()));
    expect(chiSquare(histogram(values, 8, shift))).toBeLessThan(bound);
  });

  it.each([0, 8, 16, 24])('in the steps from one id to the next, at bits %i and up', (shift) => {
    const ids = new OrderIds({ key, worker: 1, now: () => start });
    const values = many(50_001, () => low(ids.next()));
    const steps = values.slice(1).map((value, i) => (value - values[i]!) >>> 0);
    expect(chiSquare(histogram(steps, 8, shift))).toBeLessThan(bound);
  });

  it.each([0, 8, 16, 24])('in the first id of each second, at bits %i and up', (shift) => {
    const clock = aClock();
    const ids = new OrderIds({ key, worker: 1, now: clock.now });
    const firsts = many(20_000, () => {
      clock.ms += 1_000;
      return low(ids.next());
    });
    expect(chiSquare(histogram(firsts, 8, shift))).toBeLessThan(bound);
  });
});

it.each([-1, 1.5, 4_096, Number.NaN])('no worker has the number %d', (worker) => {
  expect(() => new OrderIds({ key, worker })).toThrow(/^worker number .* is not within 0 to 4095$/);
});

it.each([
  ['0', true],
  ['1', true],
  ['999999999999999999', true],
  ['9223372036854775807', true],
  ['9223372036854775808', false],
  ['10000000000000000000', false],
  ['01', false],
  ['-1', false],
  ['1.5', false],
  ['1e3', false],
  [' 1', false],
  ['abc', false],
  ['', false],
])('whether %j may be an order id: %j', (text, expected) => {
  expect(isOrderId(text)).toBe(expected);
});

it.each([0, 31, 33])('a key of %i bytes is refused', (length) => {
  const refused = () => new OrderIds({ key: new Uint8Array(length), worker: 1 });
  expect(refused).toThrow(`the order id key has ${length} bytes; it must have 32`);
});

/** Ids of `key`: two nodes of different versions must agree on them. */
const GOLDEN = [
  '664922785604493125',
  '664922787204653290',
  '664922788379315343',
  '664922789590582443',
  '664922792755310127',
];

it('the ids of a key never change, so that nodes of two versions never make the same id', () => {
  const clock = aClock();
  const ids = new OrderIds({ key, worker: 9, now: clock.now });
  const made = many(3, () => ids.next());
  clock.ms += 1_000;
  made.push(...many(2, () => ids.next()));
  expect(made).toEqual(GOLDEN);
});

it('ids of the first seconds contain their time too', () => {
  for (const second of [0, 1, 2]) {
    const ms = ORDER_ID_EPOCH_MS + second * 1_000;
    expect(takenAtMs(new OrderIds({ key, worker: 3, now: () => ms }).next())).toBe(ms);
  }
});

it('the first id at a time is above all older ids and below all others', () => {
  const last = String((2n ** 31n - 1n) << 32n);
  const second = (at: number) => String(BigInt(at) << 32n);
  const cases: [number, string][] = [
    [0, '0'],
    [1, second(1)],
    [1_000, second(1)],
    [1_001, second(2)],
    [-5_000, '0'],
    [(2 ** 31 - 1) * 1_000, last],
    [2 ** 31 * 1_000, last],
    [2 ** 33 * 1_000, last],
  ];
  for (const [after, id] of cases) expect(firstIdAt(ORDER_ID_EPOCH_MS + after), String(after)).toBe(id);
});
