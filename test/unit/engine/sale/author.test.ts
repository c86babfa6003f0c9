/** Who makes a change, and why: both are stored, and shown to people. */
import { describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../../src/engine/errors.ts';
import { parseActor, parseReason } from '../../../../src/engine/sale/author.ts';

function faultsOf(parse: () => string) {
  try {
    return parse();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInput);
    return (error as InvalidInput).faults;
  }
}

describe('the operator', () => {
  it.each(['a', 'anna', 'Anna B. (~1)', ' ', 'x'.repeat(200)])('may be %j', (name) => {
    expect(parseActor(name)).toBe(name);
  });

  it.each(['', 'x'.repeat(201), 'ännä', 'a\nb', 'ab\t', '\x7fab'])('can’t be %j', (name) => {
    const problem = 'must be 1 to 200 printable ASCII characters';
    expect(faultsOf(() => parseActor(name))).toEqual([{ field: 'X-Operator', problem }]);
    expect(faultsOf(() => parseActor(name, '--as'))).toEqual([{ field: '--as', problem }]);
  });
});

describe('the reason', () => {
  it.each([
    [undefined, ''],
    ['', ''],
    ['sold out', 'sold out'],
    ['x'.repeat(500), 'x'.repeat(500)],
  ])('%j is %j', (given, reason) => {
    expect(parseReason(given)).toBe(reason);
  });

  it.each([
    [5, 'must be a string'],
    ['x'.repeat(501), 'must have at most 500 characters'],
    ['a\nb', 'must be one line of well-formed text without control characters'],
  ])('can’t be %j', (given, problem) => {
    expect(faultsOf(() => parseReason(given))).toEqual([{ field: 'reason', problem }]);
  });
});
