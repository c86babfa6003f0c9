/**
 * Writes orders that frozen logs still hold to Postgres: the part of a rebuild (rebuild.ts) before the new
 * generation.
 */
import type { Knex } from 'knex';
import {
  type Backend,
  type KnownEntry,
  type LogEntry,
  type LogHead,
  type LogPosition,
  type LogRead,
  NO_ENTRY,
  type Rejection,
} from '../engine/contract.ts';
import { BackendCorrupt, StaleGeneration } from '../engine/errors.ts';
import { readCursors } from '../postgres/cursors.ts';
import { type Database, rows } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';
import type { SaleRow } from '../sales/sale-rows.ts';
import { applySlices, GuardRefused } from '../sync/apply/apply.ts';
import { sellEach } from '../sync/apply/apply-each.ts';
import { type Batch, batchOf, type Slice, unitsOf } from '../sync/apply/batch.ts';
import { after } from '../sync/apply/log-chain.ts';
import { knownOrders } from './known-orders.ts';

/** Log entries in one read, and so in one transaction. */
const SALVAGE_ENTRIES = 500;

/** The logs of a sale in one generation. */
export interface Logs {
  readonly generation: number;
  readonly segments: number;
}

export interface Salvage {
  /** Orders that were added to Postgres. */
  readonly orders: number;
  /** The log heads by segment, of the salvaged generation. */
  readonly heads: readonly (LogHead | undefined)[];
}

interface Observer {
  rejected(rejection: Rejection): void;
  /** Called with the number of finished logs. */
  logsDone(done: number): void;
}

/** @throws StaleGeneration if the sale has a new generation by now; BackendCorrupt if a log can't be read */
export async function salvage(
  db: Database,
  backend: Backend,
  row: SaleRow,
  { generation, segments }: Logs,
  observer: Observer,
): Promise<Salvage> {
  const heads: (LogHead | undefined)[] = [];
  const saleId = row.sale.id;
  const cursors = await readCursors(db, saleId);
  let orders = 0;
  for (let segment = 0; segment < segments; segment++) {
    let position: LogPosition = { saleId, segment, generation, seq: 0, tail: '' };
    const cursor = cursors[segment];
    let saved: KnownEntry = cursor?.generation === generation ? cursor : NO_ENTRY;
    for (;;) {
      const [read] = await backend.log.readLog([position], SALVAGE_ENTRIES);
      const last = read?.entries.at(-1);
      if (read?.fault !== undefined)
        throw new BackendCorrupt(
          `the log of segment ${segment} can't be read, and may hold orders: ${read.fault}`,
        );
      if (!read || !last) {
        heads.push(read?.head);
        break;
      }
      saved = followed(saved, read.entries);
      const applied = await applyUnknown(db, row, read, saved.orders);
      orders += applied.orders;
      for (const rejection of applied.rejected) observer.rejected(rejection);
      position = after(position, last);
    }
    observer.logsDone(segment + 1);
  }
  return { orders, heads };
}

/**
 * The last entry that follows `saved` without a gap. After the salvage Postgres has all orders up to it. Its count says how many these
 * are. A count of the orders that the salvage adds would be too small: the log may hold an order that Postgres had before, because a
 * node has sent it again after it had ended.
 */
function followed(saved: KnownEntry, entries: readonly LogEntry[]): KnownEntry {
  let last = saved;
  for (const { seq, previous, tail, ordersSoFar } of entries)
    if (seq === last.seq + 1 && previous === last.tail) last = { seq, tail, orders: ordersSoFar };
  return last;
}

interface Applied {
  readonly orders: number;
  readonly rejected: readonly Rejection[];
}

/**
 * Applies orders in the same way as sync, which may be applying the same ones: orders first, the sale's row last. If Postgres
 * refuses them, perhaps because a sync was faster, they are applied one by one, under a lock on the row.
 * @param saved how many orders of the log Postgres certainly has afterwards
 */
async function applyUnknown(db: Database, row: SaleRow, read: LogRead, saved: number): Promise<Applied> {
  try {
    return await despiteDeadlocks(() => db.transaction((trx) => applyAtOnce(trx, row, read, saved)));
  } catch (error) {
    if (!(error instanceof GuardRefused)) throw error;
    return despiteDeadlocks(() => db.transaction((trx) => applySingly(trx, row, read, saved)));
  }
}

/** @throws GuardRefused */
async function applyAtOnce(
  trx: Knex.Transaction,
  row: SaleRow,
  read: LogRead,
  saved: number,
): Promise<Applied> {
  const { slices, orders } = await unknownOf(trx, read);
  if (orders > 0) await applySlices(trx, slices, []);
  await lockGeneration(trx, row);
  await countInCursor(trx, read, slices, saved);
  return { orders, rejected: [] };
}

async function applySingly(
  trx: Knex.Transaction,
  row: SaleRow,
  read: LogRead,
  saved: number,
): Promise<Applied> {
  await lockGeneration(trx, row);
  const { slices, orders } = await unknownOf(trx, read);
  const rejected = await sellEach(trx, slices);
  await countInCursor(trx, read, slices, saved);
  return { orders, rejected: [...rejected.values()] };
}

/**
 * Locks the sale's row by writing to it. It is written even if all orders are rejected and no units change: a deletion sees by the
 * row's version that orders were added (deletion/begin-deletion.ts), and a draft by the time in the row (draft.ts).
 * @throws StaleGeneration
 */
async function lockGeneration(trx: Knex.Transaction, { sale, generation }: SaleRow): Promise<void> {
  const current = await rows(
    trx,
    'UPDATE sales SET draft_since = least(draft_since, now()) WHERE id = ? AND generation = ? RETURNING 1',
    [sale.id, generation],
  );
  if (current.length === 0) throw new StaleGeneration(sale.id, generation);
}

/** The orders of a log that Postgres does not have. */
async function unknownOf(trx: Knex.Transaction, read: LogRead): Promise<Batch> {
  const ids = read.entries.flatMap((entry) => entry.orders.map((order) => order.orderId));
  const known = await knownOrders(trx, ids);
  const entries = read.entries.map((entry) => ({
    ...entry,
    orders: entry.orders.filter((order) => !known.has(order.orderId)),
  }));
  return batchOf([{ ...read, entries }], Number.POSITIVE_INFINITY);
}

/**
 * Adds the orders to the cursor's counts; its position stays. So a rebuild that starts again finds them in Postgres
 * and does not count them as lost.
 */
async function countInCursor(
  trx: Knex.Transaction,
  { position }: LogRead,
  slices: readonly Slice[],
  saved: number,
): Promise<void> {
  const orders = slices.flatMap((slice) => slice.entries.flatMap((entry) => entry.orders));
  await trx.raw(
    `UPDATE segment_cursors SET orders = greatest(orders + ?, ?), units = units + ?
     WHERE sale_id = ? AND segment = ? AND generation = ?`,
    [orders.length, saved, unitsOf(orders), position.saleId, position.segment, position.generation],
  );
}
