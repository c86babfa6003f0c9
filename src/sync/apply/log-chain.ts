/**
 * Checks that a log continues at its cursor. Each entry names the entry before it, so that writes lost by Redis (a
 * failover, a restored snapshot, a cut file) show even where the numbers fit again.
 *
 * A head may be older than the entries read with it, because takes go on meanwhile. It is never older than the cursor
 * or than the findings of an earlier read.
 */
import {
  type KnownEntry,
  type LogEntry,
  type LogPosition,
  type LogRead,
  NO_ENTRY,
} from '../../engine/contract.ts';

export type ChainVerdict = { readonly ok: true } | { readonly ok: false; readonly problem: string };

/** @param newest the newest entry seen in this log by earlier reads */
export function checkHead({ position, head, fault }: LogRead, newest = NO_ENTRY): ChainVerdict {
  const { seq, tail } = position;
  if (fault !== undefined) return broken(fault);
  if (!head) return broken('the segment is missing, or of another generation');
  if (head.state === 'frozen') return broken('the segment is frozen: a rebuild was not finished');
  if (head.lost) return broken(`${named(head.lost)} is missing, although a lane was told of it`);
  if (head.seq < seq) return broken(`the newest entry is ${head.seq}, but entry ${seq} was applied`);
  if (head.seq === seq && head.tail !== tail) return broken(`entry ${seq} is not the one that was applied`);
  if (head.seq < newest.seq || (head.seq === newest.seq && head.tail !== newest.tail)) return gone(newest);
  return { ok: true };
}

/**
 * Checks that the segment is published. Call it only if the sale's record, read before, names this generation. Then all
 * its segments had been published, so a segment that is not published now has lost writes. One server of a cluster can
 * lose its data alone.
 */
export function checkPublished({ head }: LogRead): ChainVerdict {
  if (head?.state !== 'loaded' && head?.state !== 'lost') return { ok: true };
  return broken(`the segment is ${head.state}, but the sale is published`);
}

/**
 * @param newest as in `checkHead`
 * @param older entries that were the newest before, in the order of their numbers
 */
export function checkChain(
  read: LogRead,
  newest = NO_ENTRY,
  older: readonly KnownEntry[] = [],
): ChainVerdict {
  const verdict = checkHead(read, newest);
  if (!verdict.ok) return verdict;
  let { seq, tail } = read.position;
  let next = 0;
  for (const entry of read.entries) {
    if (entry.seq !== seq + 1) return broken(`entry ${seq + 1} is missing; the next is ${entry.seq}`);
    if (entry.previous !== tail)
      return broken(`entry ${entry.seq} follows ${entry.previous || 'nothing'}, not ${tail}`);
    if (entry.seq === newest.seq && entry.tail !== newest.tail) return gone(newest);
    while (next < older.length && older[next]!.seq < entry.seq) next++;
    const known = older[next];
    if (known?.seq === entry.seq && entry.tail !== known.tail) return gone(known);
    ({ seq, tail } = entry);
  }
  if (read.entries.length === 0 && read.head!.seq > seq)
    return broken(`entries ${seq + 1} to ${read.head!.seq} are missing`);
  return { ok: true };
}

/** Whether a log, read from before `position`, holds the entry at `position` or at least the entry after it. */
export function isOn({ head, entries: [first] }: LogRead, { seq, tail }: LogPosition): boolean {
  if (first?.seq === seq) return first.tail === tail;
  if (first) return first.seq === seq + 1 && first.previous === tail;
  return head?.seq === seq && head.tail === tail;
}

export function after(position: LogPosition, entry: LogEntry): LogPosition {
  return { ...position, seq: entry.seq, tail: entry.tail };
}

function gone(known: KnownEntry): ChainVerdict {
  return broken(`${named(known)} was read before and is missing now`);
}

function named({ seq, tail }: KnownEntry): string {
  return `entry ${seq} (first order ${tail})`;
}

function broken(problem: string): ChainVerdict {
  return { ok: false, problem };
}
