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

/**
 * What is wrong with the buyers' records of a segment that can't be read. Two searches may find it: the same text shows that it is one
 * fault.
 * @throws as `foreignWriteIn`
 */
export function foreignRecords(segment: number, error: unknown): string {
  return `the buyers' records of segment ${segment} were written by others: ${foreignWriteIn(error)}`;
}
