/** Corrections of a segment in memory, which in a running program is always sound. */
import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryAudits } from '../../../../src/engine/memory/memory-audits.ts';
import { MemorySegment } from '../../../../src/engine/memory/memory-segment.ts';
import { MemoryStock } from '../../../../src/engine/memory/memory-stock.ts';

const REF = { saleId: 's', segment: 0, generation: 1 };
const held = (orderId: string) => ({ orderId, quantity: 1, key: '', seq: 1 });

let segment: MemorySegment;
let audits: MemoryAudits;

beforeEach(() => {
  const stock = new MemoryStock();
  segment = new MemorySegment({ ...REF, left: 0, perBuyerLimit: 9 });
  segment.state = 'open';
  stock.saleFor('s').segments.set(0, segment);
  audits = new MemoryAudits(stock);
});

const counters = () => ({ left: segment.left, taken: segment.taken, supplied: segment.supplied });

describe('a counter', () => {
  it.each([
    // left, taken and supplied, the counter, the deviation that was seen, and both counters after it
    { is: [4, 3, 9], field: 'left', off: 2, after: { left: 6, supplied: 9 } },
    { is: [4, 3, 9], field: 'supplied', off: 2, after: { left: 4, supplied: 7 } },
    { is: [4, 3, 5], field: 'left', off: -2, after: { left: 2, supplied: 5 } },
    { is: [4, 3, 5], field: 'supplied', off: -2, after: { left: 4, supplied: 7 } },
    { is: [4, 3, 3], field: 'left', off: -4, after: { left: 0, supplied: 3 } },
  ] as const)('is corrected: %o', async ({ is: [left, taken, supplied], field, off, after }) => {
    Object.assign(segment, { left, taken, supplied });
    expect(await audits.correct(REF, field, off)).toBe(true);
    expect(counters()).toEqual({ taken, ...after });
  });

  it.each([
    { is: [4, 3, 9], field: 'left', off: 3 },
    { is: [4, 3, 9], field: 'left', off: undefined },
    { is: [4, 3, 2], field: 'left', off: -5 },
  ] as const)('is left alone if it changed meanwhile, or would be negative: %o', async (one) => {
    const [left, taken, supplied] = one.is;
    Object.assign(segment, { left, taken, supplied });
    expect(await audits.correct(REF, one.field, one.off)).toBe(false);
    expect(counters()).toEqual({ left, taken, supplied });
  });
});

describe('a buyer’s record', () => {
  it('gets the orders that it lacks, and keeps the others once', async () => {
    segment.setHolding({ buyerId: 'anna', orders: [held('1'), held('2')] });
    await audits.remember(REF, { buyerId: 'anna', orders: [held('2'), held('3')] }, 0);
    await audits.remember(REF, { buyerId: 'ben', orders: [held('4')] }, 0);
    expect(await audits.records(REF)).toEqual({
      holdings: [
        { buyerId: 'anna', orders: [held('1'), held('2'), held('3')] },
        { buyerId: 'ben', orders: [held('4')] },
      ],
      next: '',
    });
  });

  it('is gone when all its orders were returned', async () => {
    segment.setHolding({ buyerId: 'anna', orders: [held('1'), held('2')] });
    segment.compensate('anna', '1', 1);
    expect((await audits.records(REF)).holdings).toEqual([{ buyerId: 'anna', orders: [held('2')] }]);
    segment.compensate('anna', '2', 1);
    expect((await audits.records(REF)).holdings).toEqual([]);
  });
});
