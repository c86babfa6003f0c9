import { describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../src/engine/errors.ts';
import { queryValues, urlQuery } from '../../../src/lib/url-query.ts';

describe('the values of a query', () => {
  it.each([
    ['', {}],
    ['after=7', { after: '7' }],
    ['after=7&most=10', { after: '7', most: '10' }],
    ['after=a%26b+c&most=', { after: 'a&b c', most: '' }],
  ])('%j are %j', (text, values) => {
    expect(queryValues(text)).toEqual(values);
  });

  it('are each given once', () => {
    const read = () => queryValues('most=1&after=7&state=a&after=7');
    expect(read).toThrow(InvalidInput);
    expect(read).toThrow(
      expect.objectContaining({ faults: [{ field: 'after', problem: 'is given twice' }] }),
    );
  });

  it('cost as much for each name, however many there are', () => {
    const names = Array.from({ length: 50_000 }, (_, i) => `n${i}`);
    const began = performance.now();
    expect(Object.keys(queryValues(names.join('&')))).toEqual(names);
    // Compared with each other, they would take 20 s.
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});

it.each([
  [{}, ''],
  [{ after: undefined }, ''],
  [{ after: 7 }, '?after=7'],
  [{ after: 0, state: '', most: undefined }, '?after=0&state='],
  [{ name: 'a&b c', most: 10 }, '?name=a%26b+c&most=10'],
])('%j is written as %j', (values, text) => {
  expect(urlQuery(values)).toBe(text);
});
