/**
 * A process at its limit of open files can neither accept connections nor open any to its stores, and it spends its time
 * retrying to accept. So buyers' connections are bounded below that limit.
 */
import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { ANSWERED_ABOVE_SHARE } from '../../http/server/connections.ts';
import type { Log } from './log.ts';

/** Files left for the stores, the ops port, logs, threads and libraries. */
const SPARE_FILES = 256;
/** Linux only. At its start, Node raises its soft limit to the hard one; so this shows the hard limit. */
const OWN_LIMITS = '/proc/self/limits';

/** How many files and sockets this process may have open; infinite if the system does not say. */
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

/** The largest MAX_CONNECTIONS with which a process stays below its limit of open files. */
export function connectionsWithin(openFiles: number): number {
  return Math.max(1, Math.floor((openFiles - SPARE_FILES) / (1 + ANSWERED_ABOVE_SHARE)));
}

/** MAX_CONNECTIONS, or less if the process may not have that many files open: then it warns. */
export function possibleConnections({ maxConnections }: Config, log: Log): number {
  const openFiles = openFilesLimit();
  const possible = connectionsWithin(openFiles);
  if (possible >= maxConnections) return maxConnections;
  log.warn(
    { openFiles, maxConnections, possible },
    'the limit of open files allows fewer connections than MAX_CONNECTIONS: raise it (ulimit -n), or lower MAX_CONNECTIONS',
  );
  return possible;
}
