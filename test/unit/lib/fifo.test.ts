import { describe, expect, it } from 'vitest';
import { Fifo } from '../../../src/lib/fifo.ts';
import { collectGarbage } from '../../support/garbage.ts';

interface Item {
  readonly n: number;
}

function drain(fifo: Fifo<Item>, most = Number.POSITIVE_INFINITY): number[] {
  const numbers: number[] = [];
  while (numbers.length < most) {
    const item = fifo.shift();
    if (!item) break;
    numbers.push(item.n);
  }
  return numbers;
}

const range = (count: number) => Array.from({ length: count }, (_, n) => n);

describe('a queue', () => {
  it('returns items in order of arrival', () => {
    const fifo = new Fifo<Item>();
    for (const n of range(3)) fifo.push({ n });
    expect(fifo.peek()).toEqual({ n: 0 });
    expect(fifo.length).toBe(3);
    expect(drain(fifo)).toEqual([0, 1, 2]);
  });

  it('returns nothing when empty, and works afterwards', () => {
    const fifo = new Fifo<Item>();
    for (const n of range(3)) {
      expect([fifo.peek(), fifo.shift(), fifo.length]).toEqual([undefined, undefined, 0]);
      fifo.push({ n });
      expect([fifo.peek(), fifo.length]).toEqual([{ n }, 1]);
      expect(fifo.shift()).toEqual({ n });
    }
  });

  it.each([
    ['shorter', 10],
    ['longer', 5_000],
  ])(
    'keeps the order while it is filled and emptied by turns, and is %s than what it clears at once',
    (_, kept) => {
      const fifo = new Fifo<Item>();
      const out: number[] = [];
      for (const n of range(20_000)) {
        fifo.push({ n });
        if (fifo.length > kept) out.push(...drain(fifo, 1));
      }
      expect(fifo.length).toBe(kept);
      expect([...out, ...drain(fifo)]).toEqual(range(20_000));
    },
  );

  it('keeps the matching items, in order', () => {
    const fifo = new Fifo<Item>();
    for (const n of range(10)) fifo.push({ n });
    expect(drain(fifo, 3)).toEqual([0, 1, 2]);
    fifo.keep(({ n }) => n % 2 === 0);
    expect(fifo.length).toBe(3);
    fifo.push({ n: 11 });
    expect(drain(fifo)).toEqual([4, 6, 8, 11]);
  });

  it('does not reference removed items', async () => {
    const fifo = new Fifo<Item>();
    const gone = pushAndShift(fifo, 3);
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(gone.map((reference) => reference.deref())).toEqual([undefined, undefined, undefined]);
    expect(fifo.length).toBe(0);
  });

  it.each([40, 900, 3_000])('keeps a short array after %i items came and left', (count) => {
    const fifo = new Fifo<Item>();
    for (const n of range(count)) fifo.push({ n });
    expect(fifo.places).toBe(count);
    expect(drain(fifo)).toEqual(range(count));
    expect(fifo.places).toBeLessThanOrEqual(32);
    fifo.push({ n: 7 });
    expect(drain(fifo)).toEqual([7]);
  });
});

/** In a function of its own, so that no variable keeps the items. */
function pushAndShift(fifo: Fifo<Item>, count: number): WeakRef<Item>[] {
  return range(count).map((n) => {
    const item = { n };
    fifo.push(item);
    fifo.shift();
    return new WeakRef(item);
  });
}
