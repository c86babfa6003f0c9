/**
 * Builds the indexes that a migration leaves out where their table is large, because `CREATE INDEX` in a migration's
 * transaction would keep orders from being written until it has read the table. `CREATE INDEX CONCURRENTLY` lets
 * nodes sell meanwhile, and can't be in a transaction. No statement relies on these indexes for its result.
 *
 *   absent ──create──> building ──read the table twice──> valid
 *     ^                   └──Postgres or the session ends──> invalid ──drop──> absent
 *
 * A process that finds an index being built waits for it. If the process that has begun it dies, Postgres still
 * finishes the index.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Database, rows, sqlState } from './database.ts';
import { ENDED } from './live-orders.ts';

const LARGE_INDEXES: Readonly<Record<string, string>> = {
  orders_of_sale: 'CREATE INDEX CONCURRENTLY orders_of_sale ON orders (sale_id, order_id)',
  orders_ended_of_buyer: `CREATE INDEX CONCURRENTLY orders_ended_of_buyer ON orders (sale_id, buyer_id)
    WHERE one_per_buyer AND status IN ${ENDED}`,
  orders_ended: `CREATE INDEX CONCURRENTLY orders_ended ON orders (sale_id, order_id) WHERE status IN ${ENDED}`,
  orders_by_reference: `CREATE INDEX CONCURRENTLY orders_by_reference ON orders (sale_id, reference COLLATE "C", order_id)
    WHERE reference IS NOT NULL`,
};

const POLL_MS = 500;
/** Another process builds the same index: it was there already, its name was just taken, or the two waited for each other. */
const BUILT_ELSEWHERE = ['42P07', '23505', '40P01'];

export interface IndexProgress {
  readonly index: string;
  /** Blocks of the table. */
  readonly done: number;
  readonly total: number;
}

/** The indexes that are absent or not finished. Empty if the tables are not there yet. */
export async function missingIndexes(db: Database): Promise<string[]> {
  const found = await rows<{ name: string }>(
    db,
    `SELECT name FROM unnest(string_to_array(?, ',')) AS name
     WHERE to_regclass('orders') IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(name) AND indisvalid)`,
    [Object.keys(LARGE_INDEXES).join()],
  );
  return found.map(({ name }) => name);
}

/**
 * Builds the missing indexes, one after the other. Nodes may sell meanwhile.
 * @param db has two connections at least, and no bound on the time of a query
 * @returns the names of the indexes that were missing
 */
export async function buildLargeIndexes(
  db: Database,
  progress: (progress: IndexProgress) => void = () => {},
): Promise<string[]> {
  const missing = await missingIndexes(db);
  for (const index of missing) {
    const watch = watchBuild(db, index, progress);
    try {
      await build(db, index);
    } finally {
      await watch.stop();
    }
  }
  return missing;
}

async function build(db: Database, index: string): Promise<void> {
  for (;;) {
    const state = await stateOf(db, index);
    if (state === 'valid') return;
    if (state === 'building') await delay(POLL_MS);
    else await buildStep(db, index, state);
  }
}

async function buildStep(db: Database, index: string, state: 'absent' | 'invalid'): Promise<void> {
  try {
    if (state === 'invalid') await db.raw('DROP INDEX CONCURRENTLY IF EXISTS ??', [index]);
    else await db.raw(LARGE_INDEXES[index]!);
  } catch (error) {
    if (!BUILT_ELSEWHERE.includes(sqlState(error) ?? '')) throw error;
  }
}

type IndexState = 'absent' | 'building' | 'invalid' | 'valid';

async function stateOf(db: Database, index: string): Promise<IndexState> {
  const [found] = await rows<{ valid: boolean; building: boolean }>(
    db,
    `SELECT i.indisvalid AS valid, EXISTS (
       SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid) AS building
     FROM pg_index i WHERE i.indexrelid = to_regclass(?)`,
    [index],
  );
  if (!found) return 'absent';
  if (found.valid) return 'valid';
  return found.building ? 'building' : 'invalid';
}

function watchBuild(db: Database, index: string, progress: (progress: IndexProgress) => void) {
  const end = new AbortController();
  const watching = (async () => {
    while (!end.signal.aborted) {
      await delay(POLL_MS, undefined, { signal: end.signal }).catch(() => {});
      const [now] = await rows<{ done: string; total: string }>(
        db,
        `SELECT blocks_done AS done, blocks_total AS total FROM pg_stat_progress_create_index
         WHERE datname = current_database() AND blocks_total > 0`,
      );
      if (now) progress({ index, done: Number(now.done), total: Number(now.total) });
    }
  })().catch(() => {});
  return {
    stop() {
      end.abort();
      return watching;
    },
  };
}
