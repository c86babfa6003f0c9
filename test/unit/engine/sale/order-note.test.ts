import { describe, expect, test } from 'vitest';
import {
  encodeNote,
  faultsOf,
  isNote,
  NO_NOTE,
  traceOf,
  withTrace,
} from '../../../../src/engine/sale/order-note.ts';

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

describe('the trace in a note', () => {
  test.each([
    {},
    { reference: 'basket 7' },
    { metadata: { trace: TRACE } },
    { reference: '"}', metadata: { text: `","trace":"${TRACE}"}` } },
  ])('is found beside %j, which stays as it is', (note) => {
    const plain = encodeNote(note);
    const traced = withTrace(plain, TRACE);
    expect(traceOf(plain)).toBeUndefined();
    expect(traceOf(traced)).toBe(TRACE);
    expect(JSON.parse(traced)).toEqual({ ...note, trace: TRACE });
    expect(isNote(traced)).toBe(true);
    expect(traced).not.toContain('\n');
  });

  test('is not there in an order without a note', () => {
    expect(traceOf(undefined)).toBeUndefined();
    expect(traceOf(NO_NOTE)).toBeUndefined();
  });

  test('can’t come with a purchase, and has one form only', () => {
    expect(faultsOf({ trace: TRACE } as object)).toHaveLength(1);
    expect(isNote(JSON.stringify({ trace: 'anything' }))).toBe(false);
    expect(isNote(JSON.stringify({ trace: TRACE.toUpperCase() }))).toBe(false);
  });
});
