/** Whether a log continues at its cursor: lost writes must show even where the numbers fit again. */
import { describe, expect, it } from 'vitest';
import type { LogEntry, LogHead, LogRead } from '../../../../src/engine/contract.ts';
import { after, checkChain, checkHead, checkPublished, isOn } from '../../../../src/sync/apply/log-chain.ts';

const AT = { saleId: 'sale', segment: 0, generation: 1, seq: 4, tail: '1004' };

function entry(seq: number, spec: Partial<LogEntry> = {}): LogEntry {
  return { seq, previous: `${999 + seq}`, tail: `${1000 + seq}`, ordersSoFar: seq, orders: [], ...spec };
}

/** A read of a log whose entries up to 4 are applied, and that holds these entries. */
function read(entries: readonly LogEntry[], head: Partial<LogHead> = {}): LogRead {
  const newest = entries.at(-1) ?? { seq: AT.seq, tail: AT.tail };
  const { seq, tail } = newest;
  return { position: AT, head: { seq, tail, orders: seq, committed: 0, state: 'open', ...head }, entries };
}

const problem = (verdict: ReturnType<typeof checkChain>) => (verdict.ok ? 'none' : verdict.problem);

describe('a chain of entries', () => {
  it('accepts entries with consecutive numbers and matching names', () => {
    expect(checkChain(read([entry(5), entry(6)]))).toEqual({ ok: true });
    expect(checkChain(read([]))).toEqual({ ok: true });
    // A page of a longer log.
    expect(checkChain(read([entry(5), entry(6)], { seq: 9, tail: '1009' }))).toEqual({ ok: true });
  });

  it('rejects an entry that follows another than the applied one, even if its number fits', () => {
    const rewritten = read([entry(5, { previous: '77' }), entry(6)]);
    expect(problem(checkChain(rewritten))).toBe('entry 5 follows 77, not 1004');
    expect(problem(checkChain(read([entry(5, { previous: '' })])))).toBe('entry 5 follows nothing, not 1004');
  });

  it('rejects an entry that names another predecessor than the one in the log', () => {
    const rewritten = read([entry(5), entry(6, { previous: '77' }), entry(7)]);
    expect(problem(checkChain(rewritten))).toBe('entry 6 follows 77, not 1005');
  });

  it('rejects a missing number, at the beginning, in between or at the end', () => {
    expect(problem(checkChain(read([entry(6)])))).toBe('entry 5 is missing; the next is 6');
    expect(problem(checkChain(read([entry(5), entry(7)])))).toBe('entry 6 is missing; the next is 7');
    expect(problem(checkChain(read([], { seq: 6, tail: '1006' })))).toBe('entries 5 to 6 are missing');
  });

  it('rejects a log if the newest entry seen in it has another tail or is missing', () => {
    const seen = { seq: 5, tail: '88', orders: 5 };
    expect(problem(checkChain(read([entry(5), entry(6)]), seen))).toBe(
      'entry 5 (first order 88) was read before and is missing now',
    );
    const further = { seq: 9, tail: '1009', orders: 9 };
    expect(problem(checkChain(read([entry(5)]), further))).toContain('entry 9 (first order 1009)');
    const longer = read([entry(5), entry(6)], { seq: 9, tail: '1009' });
    expect(problem(checkChain(longer, seen))).toContain('entry 5 (first order 88)');
    expect(checkChain(longer, { ...seen, tail: '1005' })).toEqual({ ok: true });
  });
});

describe('a head', () => {
  it('is rejected if it is behind the cursor, or has another entry with that number', () => {
    expect(problem(checkHead(read([], { seq: 3 })))).toBe('the newest entry is 3, but entry 4 was applied');
    expect(problem(checkHead(read([], { tail: '77' })))).toBe('entry 4 is not the one that was applied');
  });

  it('is rejected if it is missing, frozen or unreadable, or lacks an entry that a lane knows', () => {
    expect(problem(checkHead({ ...read([]), head: undefined }))).toContain('missing');
    expect(problem(checkHead(read([], { state: 'frozen' })))).toContain('frozen');
    expect(problem(checkHead({ ...read([]), fault: 'no number' }))).toBe('no number');
    const lost = { seq: 9, tail: '1009', orders: 9 };
    expect(problem(checkHead(read([], { lost })))).toContain('entry 9 (first order 1009)');
  });

  it('is rejected if the newest entry that was seen has another tail, and accepted if it is there', () => {
    const seen = (tail: string) => ({ seq: 6, tail, orders: 6 });
    const head = { seq: 6, tail: '1006' };
    expect(checkHead(read([], head), seen('1006'))).toEqual({ ok: true });
    expect(problem(checkHead(read([], head), seen('88')))).toContain('entry 6 (first order 88)');
    expect(checkHead(read([], { seq: 7, tail: '1007' }), seen('1006'))).toEqual({ ok: true });
    expect(problem(checkHead(read([], { seq: 5, tail: '1005' }), seen('1006')))).toContain('entry 6');
  });

  it('of a published sale is neither loaded nor lost', () => {
    for (const state of ['loaded', 'lost'] as const)
      expect(problem(checkPublished(read([], { state })))).toContain(state);
    expect(checkPublished(read([], { state: 'paused' }))).toEqual({ ok: true });
    expect(checkPublished({ ...read([]), head: undefined })).toEqual({ ok: true });
  });
});

describe('a position', () => {
  const before = { ...AT, seq: 3, tail: '1003' };

  it('finds a position if its entry or the entry after it is there', () => {
    expect(isOn({ ...read([entry(4), entry(5)]), position: before }, AT)).toBe(true);
    expect(isOn({ ...read([entry(4, { tail: '77' })]), position: before }, AT)).toBe(false);
    expect(isOn({ ...read([entry(5)]), position: before }, AT)).toBe(true);
    expect(isOn({ ...read([entry(5, { previous: '77' })]), position: before }, AT)).toBe(false);
    expect(isOn({ ...read([entry(6)]), position: before }, AT)).toBe(false);
    expect(isOn(read([]), AT)).toBe(true);
    expect(isOn(read([], { tail: '77' }), AT)).toBe(false);
    expect(isOn(read([], { seq: 5 }), AT)).toBe(false);
    expect(isOn({ ...read([]), head: undefined }, AT)).toBe(false);
    expect(isOn({ ...read([entry(3, { tail: '1003', previous: '1004' })]), position: before }, AT)).toBe(
      false,
    );
  });

  it('moves to the next entry', () => {
    expect(after(AT, entry(5))).toEqual({ ...AT, seq: 5, tail: '1005' });
  });
});
