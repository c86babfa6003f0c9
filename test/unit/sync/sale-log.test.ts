import { describe, expect, it } from 'vitest';
import type { LogRead } from '../../../src/engine/contract.ts';
import { SaleLog } from '../../../src/sync/apply/sale-log.ts';

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

/** An entry of one order, as a read of a log finds it. */
function aRead(segment: number, seq: number, headSeq: number): LogRead {
  const position = { saleId: 'sale', segment, generation: 1, seq: seq - 1, tail: '' };
  const head = { seq: headSeq, tail: `${headSeq}`, orders: headSeq, state: 'open' } as const;
  return { position, head, entries: [{ seq, previous: '', tail: `${seq}`, ordersSoFar: seq, orders: [] }] };
}

const segmentsOf = (log: SaleLog, most: number) => log.takeGrown(most).map(({ segment }) => segment);

describe('logs that have grown', () => {
  it('are read up to the given number at a time, and the rest next', () => {
    const log = aLog(4);
    log.grow([0, 1, 2, 3]);
    expect(segmentsOf(log, 3)).toEqual([0, 1, 2]);
    expect(log.hasGrown).toBe(true);
    expect(segmentsOf(log, 3)).toEqual([3]);
    expect(log.hasGrown).toBe(false);
  });

  it('are read again until a batch has reached the seen end', () => {
    const log = aLog(2);
    for (const [segment, headSeq] of [1, 2].entries()) {
      log.saw(segment, aRead(segment, 1, headSeq));
      log.grow([segment]);
      log.reading({ ...log.positions[segment]!, seq: 1, tail: '1' });
    }
    expect(segmentsOf(log, 2)).toEqual([1]);
    log.reading({ ...log.positions[1]!, seq: 2, tail: '2' });
    expect(log.hasGrown).toBe(false);
  });

  it('are those with seen entries that were not read', () => {
    const log = aLog(3);
    log.saw(1, aRead(1, 1, 1));
    log.growUnread();
    expect(segmentsOf(log, 3)).toEqual([1]);
  });

  it('go to the end when they grow again', () => {
    const log = aLog(3);
    log.grow([0, 1, 2]);
    expect(segmentsOf(log, 1)).toEqual([0]);
    log.grow([0]);
    expect(segmentsOf(log, 2)).toEqual([1, 2]);
    expect(segmentsOf(log, 2)).toEqual([0]);
  });
});
