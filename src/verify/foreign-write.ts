import { BackendCorrupt } from '../engine/errors.ts';

/**
 * What a backend says of a key that holds what this version does not write: another type, or other words.
 * @throws the error, if it is about anything else
 */
export function foreignWriteIn(error: unknown): string {
  const isForeign =
    error instanceof BackendCorrupt ||
    error instanceof SyntaxError ||
    (error instanceof Error && error.name === 'ReplyError');
  if (!isForeign) throw error;
  return error.message;
}
