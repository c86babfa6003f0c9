/** How far the standbys of Postgres are behind it. A failover to a standby loses the orders answered `201` that it does not have. */
import type pg from 'pg';
import { number } from '../terminal/output.ts';
import { type Check, checksOf } from './check.ts';

const { ok, warn, fail } = checksOf('postgres');
/** Some 100,000 orders. */
const MAX_BEHIND_BYTES = 64 * 2 ** 20;
const MAX_BEHIND_MS = 5_000;

/** What is `null` may not be read by this user. */
export interface Standby {
  readonly name: string | null;
  readonly state: string | null;
  /** Bytes of the log that it has not flushed to its disk. */
  readonly behindBytes: number | null;
  /** How long the flush of recent log took; `null` also if nothing was written lately. */
  readonly behindMs: number | null;
}

export async function readStandbys(client: pg.Client): Promise<Standby[]> {
  const { rows } = await client.query<Standby>(`
    SELECT application_name AS name, state,
      CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn) END::float8 AS "behindBytes",
      (extract(epoch FROM flush_lag) * 1000)::float8 AS "behindMs"
    FROM pg_stat_replication`);
  return rows;
}

const isLagging = ({ state, behindBytes, behindMs }: Standby) =>
  state !== 'streaming' || (behindBytes ?? 0) > MAX_BEHIND_BYTES || (behindMs ?? 0) > MAX_BEHIND_MS;

export function checkStandbys(standbys: readonly Standby[]): Check {
  if (standbys.length === 0) return ok('standbys', 'none is connected');
  const hidden = standbys.filter(({ state }) => state === null);
  const seen = standbys.filter(({ state }) => state !== null);
  const lagging = seen.filter(isLagging);
  if (lagging.length > 0)
    return fail(
      'standbys',
      lagging.map(standbyText).join('; '),
      'Repair it, or its network: after a failover to it, orders answered 201 that it does not have are lost.',
    );
  if (hidden.length > 0)
    return warn(
      'standbys',
      `${standbys.length} connected, and this user may not see how far they are behind`,
      'Look at pg_stat_replication as an administrator, or grant pg_read_all_stats to this user.',
    );
  return ok('standbys', seen.map(standbyText).join('; '));
}

function standbyText({ name, state, behindBytes, behindMs }: Standby): string {
  const late = behindMs === null ? '' : `, flushes after ${number(Math.round(behindMs))} ms`;
  return `${name} is ${state}, ${number(behindBytes!)} bytes behind${late}`;
}
