import { describe, expect, test } from 'vitest';
import {
  encodeNote,
  faultsOf,
  isNote,
  NO_NOTE,
  traceOf,
  withTrace,
} from '../../../../src/engine/sale/order-note.ts';
import { parseOrderEdit } from '../../../../src/operations/order-edit.ts';
import { parseOrderQuery } from '../../../../src/operations/order-query.ts';

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

describe('a note', () => {
  test.each([
    [{}, ''],
    [{ reference: '' }, '{"reference":""}'],
    [{ reference: 'basket 7' }, '{"reference":"basket 7"}'],
    [{ metadata: {} }, '{"metadata":{}}'],
    [{ place: 3 }, '{"place":3}'],
    [{ reference: 'a', metadata: { b: 1 }, place: 1 }, '{"reference":"a","metadata":{"b":1},"place":1}'],
  ])('%j is %j in the log', (note, line) => {
    expect(encodeNote(note)).toBe(line);
    expect(isNote(line)).toBe(line !== NO_NOTE);
  });

  test('has no empty reference, by which nobody could look it up; in the log, one of an older version stays', () => {
    expect(isNote('{"reference":""}')).toBe(true);
    const fault = { field: 'reference', problem: 'must not be empty' };
    expect(faultsOf({ reference: '' })).toEqual([fault]);
    expect(() => parseOrderEdit({ reference: '' })).toThrow(expect.objectContaining({ faults: [fault] }));
    expect(() => parseOrderQuery({ reference: '' })).toThrow(expect.objectContaining({ faults: [fault] }));
    expect(parseOrderEdit({ reference: null }).edit).toEqual({ reference: null });
  });

  test('in the log may have a number that an older version has rounded; a new one is refused', () => {
    const note = { metadata: { a: 12345678901234567000 } };
    expect(isNote(encodeNote(note))).toBe(true);
    expect(faultsOf(note)).toMatchObject([{ field: 'metadata' }]);
  });

  test.each([
    'no JSON',
    '[]',
    '{"more":1}',
    '{"place":0}',
    '{"place":"1"}',
    '{"reference":5}',
    '{"reference":"a\\nb"}',
    '{"metadata":[]}',
    ...[`x${TRACE}`, `${TRACE}x`, '', '00-1-2-3', TRACE.replace('00-', '01-')].map((trace) =>
      JSON.stringify({ trace }),
    ),
  ])('is not %j, which another program may have written', (line) => {
    expect(isNote(line)).toBe(false);
  });

  test.each([
    [{}, []],
    [{ reference: 'x'.repeat(200), metadata: { a: 'x'.repeat(4_088) } }, []],
    [{ reference: 'x'.repeat(201) }, [{ field: 'reference', problem: 'must have at most 200 characters' }]],
    [
      { metadata: { a: 'x'.repeat(4_089) }, reference: 5 },
      [
        { field: 'reference', problem: 'must be a string' },
        { field: 'metadata', problem: 'must have at most 4096 bytes as JSON' },
      ],
    ],
  ])('with a purchase has its faults named', (note, faults) => {
    expect(faultsOf(note)).toEqual(faults);
  });
});
