/**
 * A process at its limit of open files can neither accept nor reach its stores, and goes round in circles over the
 * connections that wait. So buyers never get the last ones.
 */
import { readFileSync } from 'node:fs';
import { ANSWERED_ABOVE_SHARE } from '../../http/server/connections.ts';

/** For the stores, the ops port, logs, threads, libraries. */
const SPARE_FILES = 256;
/** Linux only. Node has raised its own soft limit to the hard one by then. */
const OWN_LIMITS = '/proc/self/limits';

/** How many files and sockets this process may have open, as far as the system says. */
export function openFilesLimit(): number {
  try {
    return limitIn(readFileSync(OWN_LIMITS, 'utf8'));
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

export function limitIn(limits: string): number {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
}

/** The largest MAX_CONNECTIONS with which a process stays below its limit. */
export function connectionsWithin(openFiles: number): number {
  return Math.max(1, Math.floor((openFiles - SPARE_FILES) / (1 + ANSWERED_ABOVE_SHARE)));
}
