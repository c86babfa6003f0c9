/** Which texts Postgres can store, and which of them people can read in one line. */
import { expect, it } from 'vitest';
import { isStorable, text } from '../../../src/engine/storable.ts';

it.each([
  ['', true],
  ['Größe 42 — 棚', true],
  ['two\nlines', true],
  ['a pair \u{1f600}', true],
  ['half a pair \ud83d', false],
  ['a NUL \0 inside', false],
])('%j can be stored: %j', (value, expected) => {
  expect(isStorable(value)).toBe(expected);
});

const problemsOf = (value: unknown) => {
  const { success, error } = text(5).safeParse(value);
  return success ? [] : error.issues.map(({ message }) => message);
};
const LINE = ['must be one line of well-formed text without control characters'];

it.each<[unknown, string[]]>([
  ['', []],
  ['12345', []],
  ['\u200fab', []],
  ['123456', ['must have at most 5 characters']],
  ['a\nb', LINE],
  ['a\tb', LINE],
  ['a\u007fb', LINE],
  ['a\u2028b', LINE],
  ['a\u2029b', LINE],
  ['a\0b', LINE],
  ['a\ud83d', LINE],
  [7, ['must be a string']],
  [undefined, ['must be a string']],
])('the problems of %j as a text of five characters: %j', (value, problems) => {
  expect(problemsOf(value)).toEqual(problems);
});
