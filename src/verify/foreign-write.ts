import { BackendCorrupt } from '../engine/errors.ts';

/**
 * Replies of a Redis that has not looked at the key: it is full or busy, it starts, it is no primary, or the user lacks a right. Redis 6.2
 * puts the place in the script before the reply.
 */
const REFUSED =
  /(?:^|: -)(?:OOM|LOADING|READONLY|MISCONF|NOREPLICAS|BUSY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|NOAUTH|NOPERM)\b|user executing the script can't/;

/**
 * The backend's error about a key that holds data of another type or format.
 * @throws the error, if it is about something else
 */
export function foreignWriteIn(error: unknown): string {
  const message = answerIn(error);
  if (REFUSED.test(message)) throw error;
  return message;
}

/**
 * What the backend has answered instead of doing what it was asked for.
 * @throws the error, if it has not answered
 */
export function answerIn(error: unknown): string {
  const isAnswer =
    error instanceof BackendCorrupt ||
    error instanceof SyntaxError ||
    (error instanceof Error && error.name === 'ReplyError');
  if (!isAnswer) throw error;
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
