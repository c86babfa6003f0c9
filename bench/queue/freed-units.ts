/** How long units that came back lay free, as Postgres has it: from the end of an order to the next order that could have them. */
import { type Database, rows } from '../../src/postgres/database.ts';
import { rounded } from '../support/figures.ts';
import { percentile } from './percentile.ts';

export interface FreedUnits {
  /** Units that came back. */
  readonly freed: number;
  /** Of these, units that nobody had taken by the end. */
  readonly left: number;
  /** Of those that were taken. `undefined`: none was. */
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  readonly maxMs: number | undefined;
}

/**
 * The first units to come back are counted as the first to be taken: they are all the same. Orders are of one unit.
 * @param stock units at the beginning @param endMs what happened later does not count, as `Date.now()`
 */
export async function readFreedUnits(
  db: Database,
  saleId: string,
  { stock, endMs = Date.now() }: { readonly stock: number; readonly endMs?: number },
): Promise<FreedUnits> {
  const orders = await rows<{ took: number; freed: number | null }>(
    db,
    `SELECT (extract(epoch FROM committed_at) * 1000)::float8 AS took,
       (extract(epoch FROM least(expired_at, cancelled_at)) * 1000)::float8 AS freed
     FROM orders WHERE sale_id = ?`,
    [saleId],
  );
  const inTime = (ms: number | null): ms is number => ms !== null && ms <= endMs;
  const took = orders.map((order) => order.took).filter(inTime);
  const freed = orders.map((order) => order.freed).filter(inTime);
  const again = sorted(took).slice(stock);
  const lay = sorted(freed)
    .slice(0, again.length)
    .map((ms, i) => Math.max(0, again[i]! - ms));
  const figure = (share: number) => (lay.length === 0 ? undefined : rounded(percentile(lay, share), 0));
  return {
    freed: freed.length,
    left: Math.max(0, freed.length - again.length),
    ...{ p50Ms: figure(0.5), p99Ms: figure(0.99), maxMs: figure(1) },
  };
}

const sorted = (values: readonly number[]) => values.toSorted((a, b) => a - b);
