import { type Database, rows } from '../postgres/database.ts';

/** At most this many sales are searched. */
const RECENT_SALES = 1_000;

export interface RecentSale {
  readonly id: string;
  readonly segments: number;
  readonly generation: number;
}

/**
 * Sales whose logs may still hold orders that Postgres does not have, at most RECENT_SALES: those that are not closed come first, and of
 * each kind the newest.
 */
export function readRecentSales(db: Database): Promise<RecentSale[]> {
  return rows<RecentSale>(
    db,
    `(SELECT id, segments, generation FROM sales WHERE generation > 0 AND state <> 'closed'
       ORDER BY created_at DESC, id LIMIT ?)
     UNION ALL
     (SELECT id, segments, generation FROM sales WHERE generation > 0 AND state = 'closed' AND archived_at IS NULL
       ORDER BY created_at DESC, id LIMIT ?)
     LIMIT ?`,
    [RECENT_SALES, RECENT_SALES, RECENT_SALES],
  );
}

/** All sales whose logs may still hold orders that Postgres does not have. */
export function readSalesWithLogs(db: Database): Promise<RecentSale[]> {
  return rows<RecentSale>(
    db,
    'SELECT id, segments, generation FROM sales WHERE generation > 0 AND archived_at IS NULL',
  );
}
