/** Counts what the order logs hold beyond the cursors, entry by entry: it must agree with the counters. */
import pLimit from 'p-limit';
import type { Backend, LogPosition } from '../engine/contract.ts';
import type { Cursor } from '../postgres/cursors.ts';
import { unitsOf } from '../sync/apply/batch.ts';
import { after, checkChain } from '../sync/apply/log-chain.ts';

/** Entries of one log in memory at a time, of up to 256 orders each. */
const LOG_PAGE_ENTRIES = 200;
const PARALLEL_LOGS = 4;

export interface LogCount {
  readonly cursor: Cursor;
  /** Units in the entries beyond the cursor, up to the segment's counter. */
  readonly units: number;
  /** Why the log does not continue at the cursor. */
  readonly problem?: string;
  /** Data in the log that this version does not write. */
  readonly fault?: string;
}

/** @param upTo by segment, the newest entry that counts */
export function countLogs(
  backend: Backend,
  cursors: readonly Cursor[],
  upTo: (segment: number) => number,
): Promise<LogCount[]> {
  return pLimit(PARALLEL_LOGS).map(cursors, (cursor) => countLog(backend, cursor, upTo(cursor.segment)));
}

/** Page by page, up to entry `upTo`: a log may hold more than fits in memory, and grows meanwhile. */
async function countLog(backend: Backend, cursor: Cursor, upTo: number): Promise<LogCount> {
  let position: LogPosition = cursor;
  for (let units = 0; ; ) {
    const [read] = await backend.log.readLog([position], LOG_PAGE_ENTRIES);
    if (read!.fault !== undefined) return { cursor, units, fault: read!.fault };
    const verdict = checkChain(read!);
    if (!verdict.ok) return { cursor, units, problem: verdict.problem };
    for (const entry of read!.entries) if (entry.seq <= upTo) units += unitsOf(entry.orders);
    const newest = read!.entries.at(-1);
    if (!newest || newest.seq >= upTo) return { cursor, units };
    position = after(position, newest);
  }
}
