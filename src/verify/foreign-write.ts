import { BackendCorrupt } from '../engine/errors.ts';

/**
 * The backend's error about a key that holds data of another type or format.
 * @throws the error, if it is about something else
 */
export function foreignWriteIn(error: unknown): string {
  const isForeign =
    error instanceof BackendCorrupt ||
    error instanceof SyntaxError ||
    (error instanceof Error && error.name === 'ReplyError');
  if (!isForeign) throw error;
  return error.message;
}
