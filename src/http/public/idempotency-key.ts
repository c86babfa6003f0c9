/**
 * The header Idempotency-Key. The IETF's draft-ietf-httpapi-idempotency-key-header has a string of RFC 8941 in quotation marks,
 * `"abc"`; many clients send the bare `abc`. Both are the same key.
 */
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../../engine/limits.ts';

export const KEY_FORM = `Idempotency-Key must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces, bare or between quotation marks`;

/** A string of RFC 8941, 3.3.3: only a quotation mark and a backslash may be escaped, and must be. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;
const QUOTATION_MARK = 0x22;

/** @param value of the header; `''` if there is none @returns the key, `''` if there is none, `undefined` if it is malformed */
export function parseKey(value: string): string | undefined {
  if (value === '') return '';
  const key = value.charCodeAt(0) === QUOTATION_MARK ? unquoted(value) : value;
  return key !== undefined && ID_PATTERN.test(key) ? key : undefined;
}

function unquoted(value: string): string | undefined {
  return QUOTED.exec(value)?.[1]?.replace(/\\(.)/g, '$1');
}
