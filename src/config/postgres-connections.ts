/** How many connections to Postgres a node uses. */
import type { Config } from './config.ts';

/** Of each worker, only for single buyers: their orders and their places. The main thread's pool does the rest. */
export const WORKER_CONNECTIONS = 2;
/** A session that holds the locks. */
const LOCK_CONNECTIONS = 1;

export function postgresConnections({ pgPoolMax, workers }: Pick<Config, 'pgPoolMax' | 'workers'>): number {
  return pgPoolMax + workers * WORKER_CONNECTIONS + LOCK_CONNECTIONS;
}
