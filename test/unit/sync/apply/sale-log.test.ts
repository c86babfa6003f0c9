import { describe, expect, it } from 'vitest';
import type { LogRead } from '../../../../src/engine/contract.ts';
import { SaleLog } from '../../../../src/sync/apply/sale-log.ts';

function aLog(
  segments: number,
  { generation = 1, before }: { generation?: number; before?: SaleLog } = {},
): SaleLog {
  const cursors = Array.from({ length: segments }, (_, segment) => ({
    saleId: 'sale',
    segment,
    generation,
    seq: 0,
    tail: '',
    orders: 0,
    units: 0,
  }));
  return new SaleLog('sale', cursors, before);
}

/** An entry of one order, as a read of a log finds it. */
function aRead(segment: number, seq: number, headSeq: number): LogRead {
  const position = { saleId: 'sale', segment, generation: 1, seq: seq - 1, tail: '' };
  const head = { seq: headSeq, tail: `${headSeq}`, orders: headSeq, committed: 0, state: 'open' } as const;
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

describe('what was seen in the logs', () => {
  const NONE = { seq: 0, tail: '', orders: 0 };

  it('is the newest of the head and the entries, and counts as backlog until it is applied', () => {
    const log = aLog(2);
    log.saw(0, aRead(0, 3, 2));
    log.saw(1, { ...aRead(1, 1, 2), entries: [] });
    expect(log.newest).toEqual([
      { seq: 3, tail: '3', orders: 3 },
      expect.objectContaining({ seq: 2, tail: '2', orders: 2 }),
    ]);
    expect(log.backlog).toBe(5);
    log.applied({ ...log.positions[0]!, seq: 2, tail: '2' }, 2);
    expect(log.backlog).toBe(3);
    // An older head changes nothing.
    log.saw(0, { ...aRead(0, 1, 1), entries: [] });
    expect(log.newest[0]).toEqual({ seq: 3, tail: '3', orders: 3 });
  });

  it('is kept when the cursors are read again, unless the sale was rebuilt meanwhile', () => {
    const before = aLog(2);
    before.saw(1, aRead(1, 3, 3));
    expect(aLog(2, { before }).newest).toEqual(
      [NONE, { seq: 3, tail: '3', orders: 3 }].map((one) => expect.objectContaining(one)),
    );
    expect(aLog(2, { before, generation: 2 }).newest).toEqual(
      [NONE, NONE].map((one) => expect.objectContaining(one)),
    );
  });

  it('also holds what was the newest before, until it is applied: the backend may lose it, and write others', () => {
    const log = aLog(2);
    for (const seq of [2, 4, 4, 5]) log.saw(0, aRead(0, seq, seq));
    const seqs = (of: SaleLog) => of.older[0]!.map(({ seq }) => seq);
    expect(seqs(log)).toEqual([2, 4]);
    expect(seqs(aLog(2, { before: log }))).toEqual([2, 4]);
    expect(seqs(aLog(2, { before: log, generation: 2 }))).toEqual([]);
    log.applied({ ...log.positions[0]!, seq: 2, tail: '2' }, 2);
    expect(seqs(log)).toEqual([4]);
    log.applied({ ...log.positions[0]!, seq: 5, tail: '5' }, 5);
    expect(seqs(log)).toEqual([]);
  });

  it('is of the segments of the sale: hints of others are ignored', () => {
    const log = aLog(2);
    log.grow([1, 2]);
    expect(segmentsOf(log, 9)).toEqual([1]);
    log.grow([99]);
    expect(log.hasGrown).toBe(false);
  });

  it('counts no backlog in a log that is applied further than it was seen', () => {
    const log = aLog(2);
    log.applied({ ...log.positions[0]!, seq: 4, tail: '4' }, 4);
    log.saw(1, aRead(1, 1, 3));
    expect(log.backlog).toBe(3);
    expect(log.entries).toBe(3);
  });

  it('stays the same if a read shows nothing new', () => {
    const log = aLog(1);
    log.saw(0, aRead(0, 3, 3));
    const before = log.newest[0];
    log.saw(0, aRead(0, 3, 3));
    log.saw(0, { ...aRead(0, 1, 1), head: undefined, entries: [] });
    expect(log.newest[0]).toBe(before);
  });

  it('is nothing if the sale was never built', () => {
    const log = aLog(0);
    expect(log).toMatchObject({ generation: 0, positions: [], newest: [], entries: 0, backlog: 0 });
    log.grow([0]);
    expect(log.hasGrown).toBe(false);
  });

  it('of another generation moves no cursor', () => {
    const log = aLog(1);
    log.applied({ ...log.positions[0]!, generation: 2, seq: 5, tail: '5' }, 5);
    expect(log.positions[0]).toMatchObject({ seq: 0 });
    log.applied({ ...log.positions[0]!, seq: 5, tail: '5' }, 5);
    log.applied({ ...log.positions[0]!, seq: 4, tail: '4' }, 4);
    expect(log.positions[0]).toMatchObject({ seq: 5, tail: '5' });
    expect(log.backlog).toBe(0);
  });
});

describe('the entries and the backlog', () => {
  const at = (segment: number, seq: number) => ({
    saleId: 'sale',
    segment,
    generation: 1,
    seq,
    tail: `${seq}`,
  });

  it('follow each read and each batch', () => {
    const log = aLog(2);
    expect([log.entries, log.backlog]).toEqual([0, 0]);
    log.saw(0, aRead(0, 1, 3));
    expect([log.entries, log.backlog]).toEqual([3, 3]);
    log.saw(1, aRead(1, 1, 2));
    expect([log.entries, log.backlog]).toEqual([5, 5]);
    log.applied(at(0, 2), 2);
    expect([log.entries, log.backlog]).toEqual([5, 3]);
    log.applied(at(1, 2), 2);
    expect([log.entries, log.backlog]).toEqual([5, 1]);
  });
});
