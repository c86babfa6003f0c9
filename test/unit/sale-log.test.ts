import { describe, expect, it } from 'vitest';
import { SaleLog } from '../../src/sync/sale-log.ts';

function aLog(segments: number): SaleLog {
  const cursors = Array.from({ length: segments }, (_, segment) => ({
    saleId: 'sale',
    segment,
    generation: 1,
    seq: 0,
    tail: '',
    orders: 0,
    units: 0,
  }));
  return new SaleLog('sale', cursors);
}

const segmentsOf = (log: SaleLog, most: number) => log.takeGrown(most).map(({ segment }) => segment);

describe('logs that have grown', () => {
  it('are read as many at a time as are asked for, and those left over next', () => {
    const log = aLog(4);
    log.grow([0, 1, 2, 3]);
    expect(segmentsOf(log, 3)).toEqual([0, 1, 2]);
    expect(log.hasGrown).toBe(true);
    expect(segmentsOf(log, 3)).toEqual([3]);
    expect(log.hasGrown).toBe(false);
  });

  it('wait behind the others when they grow again', () => {
    const log = aLog(3);
    log.grow([0, 1, 2]);
    expect(segmentsOf(log, 1)).toEqual([0]);
    log.grow([0]);
    expect(segmentsOf(log, 2)).toEqual([1, 2]);
    expect(segmentsOf(log, 2)).toEqual([0]);
  });
});
