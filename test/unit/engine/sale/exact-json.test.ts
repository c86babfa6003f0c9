import { expect, test } from 'vitest';
import { parseExactly } from '../../../../src/engine/sale/exact-json.ts';

test.each([
  '{}',
  'null',
  '"1e400"',
  '["12345678901234567890", "\\"12345678901234567890", "\\\\", 5]',
  '[0, -0, 0.0, 0e5, 0.000e-400, 1.0, 1e0, 10e-1, -2.50, 1E+2, 100e-2]',
  '[0.1, 0.30000000000000004, 9007199254740991, -9007199254740991, 5e-324, 1.7976931348623157e308]',
  `[1.${'0'.repeat(90)}, 1e-7, 123456789012345e-20, 0.000123456789012345]`,
  // The same doubles, with all 17 digits.
  '[0.10000000000000001, 19.989999999999998, 0.69999999999999996, 5.6843418860808015E-14]',
  '{"__proto__": {"1e400": "x"}, "a": [true, false]}',
])('%s is what JSON.parse makes of it', (text) => {
  expect(parseExactly(text)).toEqual(JSON.parse(text));
});

test.each([
  '1e400',
  '-1e400',
  '1e-400',
  '12345678901234567890',
  '9007199254740993',
  '0.12345678901234567890',
  '0.1000000000000000055',
  '52.520008123456789',
  '1.00000000000000000001',
  `1.${'0'.repeat(200)}`,
])('%s has no equal in JavaScript, and is no finite number then', (text) => {
  expect(parseExactly(text)).toBe(Number.POSITIVE_INFINITY);
  expect(parseExactly(`{"a": ["${text}", ${text}, 1]}`)).toEqual({ a: [text, Number.POSITIVE_INFINITY, 1] });
});

test.each(['', '{', '01', '-', '1e', '"', '012345678901234567890', '[1,]'])('%s is no JSON', (text) => {
  expect(() => parseExactly(text)).toThrow(SyntaxError);
});
