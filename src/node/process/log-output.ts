/**
 * Where the lines of a log go: stdout or stderr. A log that can't be written must neither end nor hold up a process that sells.
 *
 *   written ──its disk is full, its terminal or its reader is gone──> kept
 *      └──its reader does not read──> waited for, for WAIT_MS at most ──> kept
 *   kept ──the next line can be written──> written, before that line
 *     └──KEPT_BYTES are kept──> the new line is lost, and counted
 *
 * Each thread has an output of its own. What is kept when the process ends is lost.
 */
import { type DestinationStream, pino } from 'pino';
import { monotonicMs } from '../../lib/monotonic.ts';

const KEPT_BYTES = 1_048_576;
/** How long a reader that does not read is waited for, in milliseconds, until it has read again. */
const WAIT_MS = 200;

let lost = 0;

/** How many lines of this thread's logs were lost. */
export const lostLogLines = (): number => lost;

/**
 * @param fd file descriptor
 * @param onWritable called when the log can be written again, with the number of lines that were lost meanwhile
 */
export function logOutput(
  fd: number,
  onWritable: (lost: number) => void,
  keptBytes = KEPT_BYTES,
): DestinationStream {
  let blockedAtMs: number | undefined;
  let lostSince = 0;
  const output = pino.destination({
    dest: fd,
    sync: true,
    maxLength: keptBytes,
    // Between two attempts, it stops the thread for 100 ms.
    retryEAGAIN: () => {
      blockedAtMs ??= monotonicMs();
      return monotonicMs() - blockedAtMs < WAIT_MS;
    },
  });
  // pino's own listener throws what it does not know. If the reader is gone, it writes no more, and counts nothing.
  output.removeAllListeners('error');
  output.on('error', () => {});
  output.on('drop', () => {
    lost++;
    lostSince++;
    // Tries to write what is kept: a line that is lost is not tried itself.
    output.write('');
  });
  output.on('write', (bytes: number) => {
    if (bytes === 0) return;
    blockedAtMs = undefined;
    if (lostSince === 0) return;
    const count = lostSince;
    lostSince = 0;
    onWritable(count);
  });
  // pino calls it after a fatal line. That line is written, or kept, by then; and while a disk is full, it would never return.
  output.flushSync = () => {};
  return output;
}
