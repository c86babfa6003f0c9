/** How many places wait before one place. It reads them all, so it is for single looks of operators and not for buyers. */
import { type Database, rows } from '../../postgres/database.ts';
import { orderOf } from '../drawing.ts';
import type { QueueState } from '../queue-state.ts';

/** Waiting places that are read together. */
const PAGE = 50_000;

/**
 * @param isDrawn the places of this queue get their ranks in a draw
 * @returns `undefined` while the rank is not drawn
 */
export async function countAhead(
  db: Database,
  { saleId, draw }: QueueState,
  isDrawn: boolean,
  number: number,
): Promise<number | undefined> {
  const { drawn, seed } = draw;
  if (!drawn) return isDrawn ? undefined : countBelow(db, saleId, number);
  // A place that was given after the draw stands behind all that took part, and those after it have higher numbers.
  if (number > drawn.entries) return countBelow(db, saleId, number);
  const ranks = (await orderOf(seed, drawn)).ranksByNumber();
  const rank = ranks.rankOf(number);
  let ahead = 0;
  for (let after = 0; ; ) {
    const waiting = await readWaitingNumbers(db, saleId, after, drawn.entries);
    for (const other of waiting) if (ranks.rankOf(other) < rank) ahead++;
    if (waiting.length < PAGE) return ahead;
    after = waiting.at(-1)!;
  }
}

async function countBelow(db: Database, saleId: string, number: number): Promise<number> {
  const [row] = await rows<{ ahead: string }>(
    db,
    "SELECT count(*)::text AS ahead FROM places WHERE sale_id = ? AND state = 'waiting' AND number < ?",
    [saleId, number],
  );
  return Number(row!.ahead);
}

async function readWaitingNumbers(
  db: Database,
  saleId: string,
  after: number,
  last: number,
): Promise<number[]> {
  const found = await rows<{ number: string }>(
    db,
    `SELECT p.number::text FROM places p WHERE p.sale_id = ? AND p.state = 'waiting' AND p.number > ? AND p.number <= ?
     ORDER BY p.number LIMIT ${PAGE}`,
    [saleId, after, last],
  );
  return found.map((row) => Number(row.number));
}
