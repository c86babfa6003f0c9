import { describe, expect, test } from 'vitest';
import { parseKey } from '../../../src/http/public/idempotency-key.ts';

const LONGEST = 'x'.repeat(128);

describe('the bare form and the string of RFC 8941 are one key', () => {
  test.each([
    ['abc', '"abc"'],
    ['5e0c2f5a-6b0d-4f5c-9a39-0d2a8c1f7b11', '"5e0c2f5a-6b0d-4f5c-9a39-0d2a8c1f7b11"'],
    ['a"b', '"a\\"b"'],
    ['a\\b', '"a\\\\b"'],
    ['a"', '"a\\""'],
    [';,=', '";,="'],
    [LONGEST, `"${LONGEST}"`],
  ])('%s', (bare, quoted) => {
    expect(parseKey(bare)).toBe(bare);
    expect(parseKey(quoted)).toBe(bare);
  });

  test('a string may be a key that has no bare form', () => expect(parseKey('"\\"a"')).toBe('"a'));
});

test('no header is no key', () => expect(parseKey('')).toBe(''));

test.each([
  ['is empty', '""'],
  ['does not end', '"abc'],
  ['is one quotation mark', '"'],
  ['ends twice', '"a"b"'],
  ['goes on after its end', '"a"b'],
  ['has a parameter', '"a";b=1'],
  ['is a list', '"a", "b"'],
  ['has an escape that RFC 8941 lacks', '"a\\nb"'],
  ['ends with a backslash', '"a\\"'],
  ['has a space', '"a b"'],
  ['has a character beyond ASCII', '"é"'],
  ['has a DEL', '"a\x7f"'],
  ['is too long', `"x${LONGEST}"`],
  ['has a space, bare', 'a b'],
  ['is too long, bare', `x${LONGEST}`],
])('a key that %s is malformed', (_, value) => expect(parseKey(value)).toBeUndefined());
