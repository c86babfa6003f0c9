/**
 * Whether what a log holds follows on from where it was last applied. Each entry names the entry before it, so that
 * writes which Redis has lost (a failover, a restored snapshot, a cut file) show even where the numbers fit again.
 *
 * A head may be older than the entries that were read with it: takes go on meanwhile. It is never older than the cursor,
 * nor than what an earlier read has found.
 */
import {
  type KnownEntry,
  type LogEntry,
  type LogPosition,
  type LogRead,
  NO_ENTRY,
} from '../../engine/contract.ts';

export type ChainVerdict = { readonly ok: true } | { readonly ok: false; readonly problem: string };

/** @param newest the newest entry that earlier reads of this log have found */
export function checkHead({ position, head, fault }: LogRead, newest = NO_ENTRY): ChainVerdict {
  const { seq, tail } = position;
  if (fault !== undefined) return broken(fault);
  if (!head) return broken('the segment is missing, or of another generation');
  if (head.state === 'frozen') return broken('the segment is frozen: a rebuild was not finished');
  if (head.lost) return broken(`${named(head.lost)}, of which a lane was told, is not there`);
  if (head.seq < seq) return broken(`the segment is at entry ${head.seq}, but ${seq} was applied`);
  if (head.seq === seq && head.tail !== tail) return broken(`entry ${seq} is not the one that was applied`);
  if (head.seq < newest.seq || (head.seq === newest.seq && head.tail !== newest.tail)) return gone(newest);
  return { ok: true };
}

/**
 * Whether the segment is published. To be asked where the sale's record was read before and names this generation: all
 * its segments were published by then. One that is not has lost that; a server of a cluster can go back by itself.
 */
export function checkPublished({ head }: LogRead): ChainVerdict {
  if (head?.state !== 'loaded' && head?.state !== 'lost') return { ok: true };
  return broken(`the segment is ${head.state}, but the sale is published`);
}

/** @param newest as in `checkHead` */
export function checkChain(read: LogRead, newest = NO_ENTRY): ChainVerdict {
  const verdict = checkHead(read, newest);
  if (!verdict.ok) return verdict;
  let { seq, tail } = read.position;
  for (const entry of read.entries) {
    if (entry.seq !== seq + 1) return broken(`entry ${seq + 1} is missing; the next is ${entry.seq}`);
    if (entry.previous !== tail)
      return broken(`entry ${entry.seq} follows on ${entry.previous || 'nothing'}, not ${tail}`);
    if (entry.seq === newest.seq && entry.tail !== newest.tail) return gone(newest);
    ({ seq, tail } = entry);
  }
  if (read.entries.length === 0 && read.head!.seq > seq)
    return broken(`entries ${seq + 1} to ${read.head!.seq} are missing`);
  return { ok: true };
}

/** Whether a log that is read from before `position` holds the entry there, or at least what follows on it. */
export function isOn({ head, entries: [first] }: LogRead, { seq, tail }: LogPosition): boolean {
  if (first?.seq === seq) return first.tail === tail;
  if (first) return first.seq === seq + 1 && first.previous === tail;
  return head?.seq === seq && head.tail === tail;
}

export function after(position: LogPosition, entry: LogEntry): LogPosition {
  return { ...position, seq: entry.seq, tail: entry.tail };
}

function gone(newest: KnownEntry): ChainVerdict {
  return broken(`${named(newest)}, which was seen there, is gone`);
}

function named({ seq, tail }: KnownEntry): string {
  return `entry ${seq} (first order ${tail})`;
}

function broken(problem: string): ChainVerdict {
  return { ok: false, problem };
}
