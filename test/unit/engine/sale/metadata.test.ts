import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { loggedMetadata, metadataOf } from '../../../../src/engine/sale/metadata.ts';

const ROUNDED =
  'must hold only numbers that are not rounded: whole ones up to 9007199254740991, others of at most 15 digits. Give longer ones as text';
const NO_JSON = 'must hold only what JSON has: text, numbers, true, false, null, arrays and plain objects';

const faultsOf = (value: unknown, schema: z.ZodType = metadataOf(200)) =>
  schema.safeParse(value).error?.issues.map(({ message }) => message);

describe('metadata that the shop gives', () => {
  test.each([
    '{}',
    '{"__proto__":1}',
    '{"__proto__":{"a":1},"constructor":{"prototype":{}},"b":{"__proto__":null}}',
    '{"a":[0.1,1e-7,5e-324,-1.5,9007199254740991,-9007199254740991]}',
    '{"":[null,true,false,"",[[]],{"":{}}]}',
  ])('comes out as it went in: %s', (text) => {
    expect(JSON.stringify(metadataOf(200).parse(JSON.parse(text)))).toBe(text);
  });

  test('is a copy, without members that are undefined', () => {
    const given = { a: undefined, b: { c: undefined, d: ['x'] } };
    const taken = metadataOf(200).parse(given);
    given.b.d[0] = 'y';
    expect(JSON.stringify(taken)).toBe('{"b":{"d":["x"]}}');
  });

  test('may have no prototype, or be of another realm', () => {
    expect(faultsOf(Object.assign(Object.create(null), { a: Object.create(null) }))).toBeUndefined();
  });

  test.each([
    [Number.NaN, ROUNDED],
    [Number.POSITIVE_INFINITY, ROUNDED],
    [Number.NEGATIVE_INFINITY, ROUNDED],
    [2 ** 53, ROUNDED],
    [-(2 ** 53), ROUNDED],
    [1e20, ROUNDED],
    [1n, NO_JSON],
    [new Date(0), NO_JSON],
    [new Map(), NO_JSON],
    [[undefined], NO_JSON],
    [new Array(1), NO_JSON],
    [() => 1, NO_JSON],
    [Symbol('a'), NO_JSON],
    [{ toJSON: () => 1 }, NO_JSON],
  ])('is refused with %s', (value, fault) => {
    for (const given of [{ a: value }, { a: { b: [1, { c: value }] } }])
      expect(faultsOf(given)).toEqual([fault]);
  });

  test.each([undefined, null, 1, 'a', [], new Date(0), new Map()])('is refused if it is %s', (given) => {
    expect(faultsOf(given)).toEqual(['must be an object, such as {"gate":"A"}']);
  });
});

test('a log may have numbers that an older version has rounded, within the other bounds', () => {
  const logged = (text: string) => faultsOf(JSON.parse(text), loggedMetadata(50));
  expect(logged('{"a":12345678901234567000,"__proto__":1e300}')).toBeUndefined();
  expect(logged('[]')).toEqual(['must be an object, such as {"gate":"A"}']);
  expect(logged(`{"a":"${'x'.repeat(50)}"}`)).toEqual(['must have at most 50 bytes as JSON']);
  expect(logged('{"a":"\\u0000"}')).toEqual(['must hold well-formed text without NUL characters']);
  expect(logged(`{"a":${'['.repeat(33)}${']'.repeat(33)}}`)).toEqual(['must be nested at most 32 deep']);
});
