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
    // Counted where a partial index has the open rows. For EXISTS, Postgres expects to meet an open row soon if there were many when it
    // last looked at the table, and then reads the whole table once they are done.
    `SELECT (SELECT count(*) > 0 FROM stock_returns WHERE applied_at IS NULL) AS returns,
       (SELECT count(*) > 0 FROM stock_movements WHERE applied_at IS NULL) AS movements,
       EXISTS (SELECT 1 FROM erasures) AS erasures,
       EXISTS (SELECT 1 FROM deleted_sales) AS deletions`,
  );
  return open!;
}
