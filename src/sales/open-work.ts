/**
 * Which kinds of rarely needed work wait in Postgres. The reconciler asks once a second, in one statement for all kinds, because in
 * most shops nothing waits.
 */
import { type Database, rows } from '../postgres/database.ts';

export interface OpenWork {
  /** Returns that were not applied. */
  readonly returns: boolean;
  /** Operators' changes that were not applied, resizes among them. */
  readonly movements: boolean;
  /** Erasures of buyers, also those that are not due yet. */
  readonly erasures: boolean;
  /** Records of deleted sales. They stay for ever. */
  readonly deletions: boolean;
}

export async function readOpenWork(db: Database): Promise<OpenWork> {
  const [open] = await rows<OpenWork>(
    db,
    // Counted where a partial index has the open rows. With EXISTS, Postgres may read the table instead of the index: if there were many
    // open rows when it last took statistics, it expects to find one soon. Once they are done, it would read the whole table.
    `SELECT (SELECT count(*) > 0 FROM stock_returns WHERE applied_at IS NULL) AS returns,
       (SELECT count(*) > 0 FROM stock_movements WHERE applied_at IS NULL) AS movements,
       EXISTS (SELECT 1 FROM erasures) AS erasures,
       EXISTS (SELECT 1 FROM deleted_sales) AS deletions`,
  );
  return open!;
}
