/**
 * Applies one batch of the order logs to Postgres, exactly once; migrations/025-many-sales.sql has the statements.
 * This needs no lock: the cursors move only from where the batch was read, in the transaction that inserts its
 * orders.
 */
import type { Knex } from 'knex';
import { StockadeError } from '../../engine/errors.ts';
import { groupBy } from '../../lib/group-by.ts';
import { nullableTexts, numbers, texts } from '../../postgres/array-literal.ts';
import { isAt, readCursors } from '../../postgres/cursors.ts';
import { type Database, sqlState } from '../../postgres/database.ts';
import { despiteDeadlocks } from '../../postgres/deadlock.ts';
import type { Batch, Slice } from './batch.ts';

/** A cursor is not where the batch was read: another sync has applied it. Nothing was changed. */
export class CursorMoved extends StockadeError {
  constructor(cause: unknown) {
    super('cursor_moved', 'another sync has applied this part of the log', { cause });
  }
}

/**
 * Postgres refuses the batch as a whole: it would break the stock, a limit or a key. Nothing was changed. `reason` as
 * in `Rejection`.
 */
export class GuardRefused extends StockadeError {
  readonly reason: 'stock' | 'limit' | 'duplicate';

  constructor(reason: GuardRefused['reason'], cause: unknown) {
    super('guard_refused', `the guard refused the batch (${reason})`, { cause });
    this.reason = reason;
  }
}

const STATEMENT = `SELECT stockade_apply_batch(
  ?::text[], ?::bigint[],
  ?::text[], ?::integer[], ?::integer[], ?::bigint[], ?::bigint[], ?::text[], ?::bigint[], ?::bigint[],
  ?::bigint[], ?::integer[], ?::text[], ?::integer[], ?::text[], ?::text[])`;

/** The whole batch. @throws CursorMoved, GuardRefused, or the database's error */
export async function applyBatch(db: Database, { slices }: Batch): Promise<void> {
  try {
    await despiteDeadlocks(() => applySlices(db, slices, slices));
  } catch (error) {
    // If another sync has applied the batch, the orders collide before the cursors are compared.
    if (error instanceof GuardRefused && !(await areAtCursors(db, slices))) throw new CursorMoved(error);
    throw error;
  }
}

/** Whether all slices begin where their cursors are. */
async function areAtCursors(db: Knex, slices: readonly Slice[]): Promise<boolean> {
  for (const [saleId, ofSale] of groupBy(slices, ({ from }) => from.saleId)) {
    const cursors = await readCursors(db, saleId);
    if (!ofSale.every(({ from }) => isAt(cursors[from.segment], from))) return false;
  }
  return true;
}

/** Applies the orders and units of `sold`, and moves the cursors of `moved`. @throws as `applyBatch` */
export async function applySlices(db: Knex, sold: readonly Slice[], moved: readonly Slice[]): Promise<void> {
  try {
    await db.raw(STATEMENT, [...saleColumns(sold), ...cursorColumns(moved), ...orderColumns(sold)]);
  } catch (error) {
    throw refusal(error) ?? error;
  }
}

function refusal(error: unknown): StockadeError | undefined {
  switch (sqlState(error)) {
    case 'SK001':
      return new CursorMoved(error);
    case 'SK002':
      return new GuardRefused('stock', error);
    case 'SK003':
      return new GuardRefused('limit', error);
    case '23505': {
      const { constraint } = error as { constraint?: string };
      return new GuardRefused(constraint === 'orders_pkey' ? 'duplicate' : 'limit', error);
    }
    default:
      return undefined;
  }
}

function saleColumns(slices: readonly Slice[]): string[] {
  const units = new Map<string, number>();
  for (const { from, units: n } of slices) units.set(from.saleId, (units.get(from.saleId) ?? 0) + n);
  return [texts([...units.keys()]), numbers([...units.values()])];
}

function cursorColumns(slices: readonly Slice[]): string[] {
  return [
    texts(slices.map((s) => s.from.saleId)),
    numbers(slices.map((s) => s.from.segment)),
    numbers(slices.map((s) => s.from.generation)),
    numbers(slices.map((s) => s.from.seq)),
    numbers(slices.map((s) => s.to.seq)),
    texts(slices.map((s) => s.to.tail)),
    numbers(slices.map((s) => s.entries.at(-1)?.ordersSoFar ?? 0)),
    numbers(slices.map((s) => s.units)),
  ];
}

function orderColumns(slices: readonly Slice[]): (string | null)[] {
  const ids: string[] = [];
  const sales: number[] = [];
  const buyers: string[] = [];
  const quantities: number[] = [];
  const keys: (string | null)[] = [];
  let sale = 0;
  let saleId: string | undefined;
  let keyed = false;
  let noted = false;
  for (const slice of slices) {
    if (slice.from.saleId !== saleId) sale++;
    saleId = slice.from.saleId;
    for (const entry of slice.entries) {
      for (const order of entry.orders) {
        ids.push(order.orderId);
        sales.push(sale);
        buyers.push(order.buyerId);
        quantities.push(order.quantity);
        keys.push(order.key === '' ? null : order.key);
        keyed ||= order.key !== '';
        noted ||= Boolean(order.note);
      }
    }
  }
  return [
    numbers(ids),
    numbers(sales),
    texts(buyers),
    numbers(quantities),
    keyed ? nullableTexts(keys) : null,
    noted ? nullableTexts(notesOf(slices)) : null,
  ];
}

function notesOf(slices: readonly Slice[]): (string | null)[] {
  return slices.flatMap(({ entries }) =>
    entries.flatMap(({ orders }) => orders.map(({ note }) => note || null)),
  );
}
