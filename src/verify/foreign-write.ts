import { BackendCorrupt } from '../engine/errors.ts';
import { isRefusal } from '../redis/refusals.ts';
import { replyReason } from '../redis/reply-reason.ts';

/** In the middle of a script, which has not looked at the key. */
const LACKS_RIGHT = "user executing the script can't";

/**
 * The backend's error about a key that holds data of another type or format.
 * @throws the error, if it is about something else
 */
export function foreignWriteIn(error: unknown): string {
  const message = answerIn(error);
  const reason = replyReason(message);
  if (isRefusal(reason) || reason.includes(LACKS_RIGHT)) throw error;
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
