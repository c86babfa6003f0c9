/** Whether Postgres has enough connections for the nodes: one that finds none refuses buyers, or does not start. */
import type pg from 'pg';
import type { Config } from '../../config/config.ts';
import { postgresConnections } from '../../config/postgres-connections.ts';
import { number } from '../terminal/output.ts';
import { type Check, checksOf } from './check.ts';

const { ok, warn, fail } = checksOf('postgres');

export interface ConnectionFacts {
  /** What this user may have at once, in this database, by the least of all limits. */
  readonly limit: number;
  /** In use now, of those that count against that limit, without this one. */
  readonly inUse: number;
  /** The setting that makes the limit. */
  readonly by: string;
}

/** Limits of roles and of databases do not bind superusers, and those may use what is reserved for them. */
const LIMITS = `
  WITH me AS (SELECT rolname, rolsuper, rolconnlimit FROM pg_roles WHERE rolname = current_user),
  clients AS (SELECT usename, datname FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()),
  limits AS (
    SELECT 'max_connections' AS by, current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0
        ELSE current_setting('superuser_reserved_connections')::int
          + coalesce(current_setting('reserved_connections', true), '0')::int END AS limit,
      (SELECT count(*) FROM clients)::int AS "inUse" FROM me
    UNION ALL
    SELECT 'the limit of the user', rolconnlimit, (SELECT count(*) FROM clients WHERE usename = rolname)::int
    FROM me WHERE rolconnlimit >= 0 AND NOT rolsuper
    UNION ALL
    SELECT 'the limit of the database', datconnlimit, (SELECT count(*) FROM clients c WHERE c.datname = d.datname)::int
    FROM pg_database d, me WHERE d.datname = current_database() AND datconnlimit >= 0 AND NOT rolsuper
  )
  SELECT by, "limit", "inUse" FROM limits ORDER BY "limit" - "inUse" LIMIT 1`;

export async function readConnections(client: pg.Client): Promise<ConnectionFacts> {
  const { rows } = await client.query<ConnectionFacts>(LIMITS);
  return rows[0]!;
}

/**
 * Fails if this number of nodes can't have their connections even if nobody else has any, and warns if they can't now: those that are in
 * use may be a node's that runs already.
 */
export function checkConnections(
  { limit, inUse, by }: ConnectionFacts,
  nodes: number,
  config: Pick<Config, 'pgPoolMax' | 'workers'>,
): Check {
  const needed = nodes * postgresConnections(config);
  const found = `${number(limit - inUse)} of ${number(limit)} free (${by}), and ${nodes === 1 ? 'a node needs' : `${nodes} nodes need`} ${number(needed)}`;
  const advice = `Raise ${by}, or lower PG_POOL_MAX or WORKERS.`;
  if (needed > limit) return fail('connections', found, advice);
  return needed > limit - inUse ? warn('connections', found, advice) : ok('connections', found);
}
