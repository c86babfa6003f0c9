/**
 * Builds a sale's state in the backend from Postgres: at its creation, at the start of an in-process backend, when
 * the backend has lost data, and for a resize.
 *
 *   freeze -> salvage -> next generation -> clear -> load -> publish
 *
 * What each step does, what is left if the process dies, and why two rebuilds at once do no harm:
 * docs/internals/rebuild.md.
 *
 * A sale that is archived leaves the backend by the same steps: its next generation has no cursors, and instead of
 * being loaded it is removed (docs/internals/leaving.md). An archived sale that the backend has again, because it was
 * restored from a copy or the process that archived it has died, leaves once more.
 *
 * The next generation may have another number of segments. Those beyond the new number are surplus. They are removed
 * (cleared) once they are salvaged, before anything is loaded. If one is there later, the backend has gone back to before that, and the
 * segment may have sold: then the sale is not published, and the next rebuild salvages the segment. So a rebuild freezes and salvages
 * whatever segments the backend has, of whatever generation, besides those that Postgres and the backend's record name.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import type { Backend, KnownEntry, Rejection } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { AFTER_ALL_IDS } from '../engine/limits.ts';
import type { Author } from '../engine/sale/author.ts';
import type { RebuildProgress } from '../operations/recover-operations.ts';
import { type Database, rows } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';
import { readDeletedGeneration } from '../sales/deleted-sales.ts';
import { followState } from '../sales/follow-state.ts';
import { closeArchive, coverMovements, openArchive, readWantedSegments } from '../sales/ledger.ts';
import { readSale, type SaleRow } from '../sales/sale-rows.ts';
import { type Draft, finishDraft, stampOf } from './draft.ts';
import { applyErasures, leavePlaces, lockDueErasures } from './erasures.ts';
import { loadBuyers, loadSegments } from './load.ts';
import { type Loss, lossesOf } from './losses.ts';
import { writeLosses } from './lost-orders.ts';
import { type Logs, type Salvage, salvage } from './salvage.ts';

export interface RebuildReport {
  readonly generation: number;
  readonly salvagedOrders: number;
  readonly loadedBuyers: number;
}

/** What was known about the sale's logs before the rebuild, and callbacks for what the rebuild finds. */
export interface Witness {
  /**
   * The generation in which the entries were seen. If a later one has begun, its rebuild has counted the losses, and
   * this rebuild is not needed any more. Missing: no entries were seen.
   */
  readonly generation?: number;
  /** The newest entry seen in each segment's log. */
  readonly newest: readonly KnownEntry[];
  /** By segment, the entries that were the newest before. The backend may have lost them since. */
  readonly older?: readonly (readonly KnownEntry[])[];
  /** Called for each salvaged order that Postgres has refused, as soon as that is committed. */
  rejected(rejection: Rejection): void;
  /** Called for each segment that has lost orders, once it is certain that no other rebuild counts the same loss. */
  ordersLost(loss: Loss): void;
}

export const NO_WITNESS: Witness = { newest: [], rejected() {}, ordersLost() {} };

type OnProgress = (progress: RebuildProgress) => void;

export interface RebuildOptions {
  /** The buyers' records of the next generation. Missing: they are loaded while buyers wait. */
  readonly draft?: Draft | undefined;
  /** The sale, which is closed, is archived. Missing: it is built again, unless it is archived already. */
  readonly archive?: Author | undefined;
  readonly progress?: OnProgress;
}

/** The author of the ledger's row when an archived sale leaves the backend once more. */
const ARCHIVED_AGAIN: Author = { actor: 'stockade', reason: 'the backend held the archived sale again' };

/**
 * @returns `undefined` if there is nothing to do: there is no such sale, or it is archived and not in the backend
 * @throws StaleGeneration if another rebuild was faster; the database's or backend's error
 */
export async function rebuildSale(
  db: Database,
  backend: Backend,
  saleId: string,
  witness: Witness = NO_WITNESS,
  { draft, archive, progress = () => {} }: RebuildOptions = {},
): Promise<RebuildReport | undefined> {
  const before = await readSale(db, saleId);
  if (!before || (before.archivedAt && !(await backend.sales.read(saleId)))) return undefined;
  if ((witness.generation ?? before.generation) !== before.generation) {
    throw new StaleGeneration(saleId, before.generation);
  }
  // An archive never finishes an earlier rebuild: that would publish the sale, which is to leave.
  const loadedUpTo = archive ? undefined : await loadedByUnfinished(db, backend, before, witness);
  if (loadedUpTo !== undefined) {
    const loadedBuyers = await loadAndPublish(db, backend, before, loadedUpTo, progress);
    return { generation: before.generation, salvagedOrders: 0, loadedBuyers };
  }
  // A sale that was never built has no logs and no orders.
  const isNew = before.generation === 0;
  const { orders: salvagedOrders, heads } = isNew
    ? NOTHING_SALVAGED
    : await salvageAll(db, backend, before, witness, progress);
  const archiving = archive ?? (before.archivedAt && ARCHIVED_AGAIN);
  const { row, losses, hasErased } = await despiteDeadlocks(() =>
    nextGeneration(db, before, (trx) => lossesOf(trx, saleId, heads, witness), archiving),
  );
  for (const loss of losses) witness.ordersLost(loss);
  if (archiving) {
    await backend.sales.archive({ saleId, generation: row.generation }, 'idle');
    await closeArchive(db, saleId);
    return { generation: row.generation, salvagedOrders, loadedBuyers: 0 };
  }
  if (isNew) {
    await loadSegments(backend, row, () => 'none');
    await publishNew(db, backend, row, progress);
    return { generation: row.generation, salvagedOrders, loadedBuyers: 0 };
  }
  // A draft names buyers who are erased now. Loading without it removes it from the backend.
  const loadedBuyers = await buildNext(db, backend, row, hasErased ? undefined : draft, progress);
  return { generation: row.generation, salvagedOrders, loadedBuyers };
}

const NOTHING_SALVAGED: Salvage = { orders: 0, heads: [] };

/** Freezes the segments of all generations that the backend has, and salvages their logs. @returns the heads of the newest one */
async function salvageAll(
  db: Database,
  backend: Backend,
  before: SaleRow,
  witness: Witness,
  progress: OnProgress,
): Promise<Salvage> {
  const saleId = before.sale.id;
  let salvagedOrders = 0;
  let heads: Salvage['heads'] = [];
  for (const logs of await logsOf(db, backend, before)) {
    await backend.sales.freeze(saleId, logs.segments, logs.generation);
    if (logs.isOfDeleted) continue;
    const salvaged = await salvage(db, backend, before, logs, {
      rejected: (rejection) => witness.rejected(rejection),
      logsDone: (done) => progress({ step: 'salvage', done, total: logs.segments }),
    });
    salvagedOrders += salvaged.orders;
    heads = salvaged.heads;
  }
  return { orders: salvagedOrders, heads };
}

/**
 * Builds a later generation than the first: clears, loads and publishes it.
 * @param draft is used only if it was made for the same number of segments
 * @returns the number of loaded buyers
 */
async function buildNext(
  db: Database,
  backend: Backend,
  row: SaleRow,
  draft: Draft | undefined,
  progress: OnProgress,
): Promise<number> {
  const { sale, generation } = row;
  await backend.sales.removeSegments({ saleId: sale.id, generation }, sale.segments, 'idle');
  const drafted = draft?.segments === sale.segments ? await finishDraft(db, backend, row, draft) : undefined;
  await loadSegments(backend, row, drafted && ((segment) => stampOf(drafted, segment)));
  const loadedBuyers = await loadAndPublish(db, backend, row, drafted ? AFTER_ALL_IDS : '', progress);
  return loadedBuyers + (drafted?.buyers ?? 0);
}

/**
 * How far a rebuild that was not finished has loaded this generation; `undefined` if there is no such rebuild, or if it must not be
 * continued. That is so in two cases. If the generation was published before, the backend has gone back to before the publication,
 * and the units that it holds were sold since. If there are surplus segments, one may have sold since it was salvaged, or nobody has
 * salvaged it.
 */
async function loadedByUnfinished(
  db: Database,
  backend: Backend,
  { sale, generation }: SaleRow,
  { newest }: Witness,
): Promise<string | undefined> {
  if (generation === 0 || (await backend.sales.read(sale.id))?.generation === generation) return undefined;
  if (newest.some(({ seq }) => seq > 0) || (await wasPublished(db, sale.id, generation))) return undefined;
  const [upTo, surplus] = await Promise.all([
    backend.sales.loadedUpTo({ saleId: sale.id, generation }, sale.segments),
    backend.sales.olderSegments({ saleId: sale.id, generation }, sale.segments),
  ]);
  return surplus.length > 0 ? undefined : upTo;
}

/**
 * Whether Postgres has orders of this generation, or units that the backend took back, got or gave away in it. A salvage raises a
 * cursor's count of orders and not its position, so both are looked at.
 */
async function wasPublished(db: Database, saleId: string, generation: number): Promise<boolean> {
  const ofGeneration = 'sale_id = ? AND generation = ?';
  const [found] = await rows<{ was: boolean }>(
    db,
    `SELECT EXISTS (SELECT 1 FROM segment_cursors WHERE ${ofGeneration} AND (position > 0 OR orders > 0))
       OR EXISTS (SELECT 1 FROM stock_returns WHERE ${ofGeneration} AND applied_at IS NOT NULL)
       OR EXISTS (SELECT 1 FROM stock_movements WHERE ${ofGeneration} AND applied_at IS NOT NULL
         AND action IN ('top-up', 'withdraw')) AS was`,
    Array(3).fill([saleId, generation]).flat(),
  );
  return found!.was;
}

interface LogsToSalvage extends Logs {
  /** They are those of a deleted sale with the same id: frozen, so that they can be removed, and not salvaged. */
  readonly isOfDeleted: boolean;
}

/**
 * The logs to salvage. A backend that has gone back may sell in an older generation than Postgres has: its logs count too.
 *
 * The newest generation comes last: when a segment is frozen in a generation, its data of an older generation is thrown away, so that
 * must be salvaged before.
 */
async function logsOf(
  db: Database,
  backend: Backend,
  { sale, generation }: SaleRow,
): Promise<readonly LogsToSalvage[]> {
  const [record, found] = await Promise.all([
    backend.sales.read(sale.id),
    backend.sales.olderSegments({ saleId: sale.id, generation: generation + 1 }, 0),
  ]);
  const segments = new Map([[generation, sale.segments]]);
  const add = (of: number, count: number) => segments.set(of, Math.max(segments.get(of) ?? 0, count));
  // The record counts segments that are missing, too: their logs may be there.
  if (record && record.generation < generation) add(record.generation, record.sale.segments);
  for (const older of found) add(older.generation, older.segment + 1);
  const deleted = segments.size > 1 ? await readDeletedGeneration(db, sale.id) : 0;
  return [...segments]
    .map(([of, count]) => ({ generation: of, segments: count, isOfDeleted: of <= deleted }))
    .sort((a, b) => a.generation - b.generation);
}

/**
 * Begins the next generation. Pending returns and changes are part of `sales.stock` and of what is loaded next, so
 * they are marked as applied. If an operator has requested another number of segments, it applies from this generation on,
 * whatever the reason for the rebuild. The first generation of a sale comes after those of a deleted sale with the same id.
 *
 * Buyers whose erasure is due are erased here, after the salvage: so the orders that were in the logs are included.
 *
 * Losses are counted under the lock on the sale's row, which a sync needs for its batch. So each batch either has
 * committed, and its orders are counted as saved, or finds its cursors gone and changes nothing.
 */
async function nextGeneration(
  db: Database,
  { sale, generation }: SaleRow,
  countLosses: (trx: Knex.Transaction) => Promise<readonly Loss[]>,
  archiving: Author | undefined,
): Promise<{ row: SaleRow; losses: readonly Loss[]; hasErased: boolean }> {
  return db.transaction(async (trx) => {
    const erasures = await lockDueErasures(trx, sale.id);
    await leavePlaces(trx, sale.id, erasures);
    const [raised] = await rows<{ generation: number }>(
      trx,
      'UPDATE sales SET generation = greatest(generation, ?) + 1 WHERE id = ? AND generation = ? RETURNING generation',
      [generation === 0 ? await readDeletedGeneration(trx, sale.id) : 0, sale.id, generation],
    );
    if (!raised) throw new StaleGeneration(sale.id, generation);
    const next = raised.generation;
    const losses = await countLosses(trx);
    // Read under the lock on the row, because the movements found here are marked as applied below.
    const segments = (await readWantedSegments(trx, sale.id)) ?? sale.segments;
    await trx.raw('UPDATE sales SET segments = ? WHERE id = ?', [segments, sale.id]);
    await trx.raw('DELETE FROM segment_cursors WHERE sale_id = ?', [sale.id]);
    if (!archiving) await insertCursors(trx, sale.id, next, segments);
    await writeLosses(trx, sale.id, next, losses);
    await coverMovements(trx, sale.id);
    await applyErasures(trx, { saleId: sale.id, generation: next }, erasures);
    await trx.raw('UPDATE stock_returns SET applied_at = now() WHERE sale_id = ? AND applied_at IS NULL', [
      sale.id,
    ]);
    if (archiving) {
      await trx.raw('UPDATE sales SET archived_at = coalesce(archived_at, now()) WHERE id = ?', [sale.id]);
      await trx.raw('DELETE FROM queue_presence WHERE sale_id = ?', [sale.id]);
      await openArchive(trx, { saleId: sale.id, generation: next }, archiving);
    }
    return { row: (await readSale(trx, sale.id))!, losses, hasErased: erasures.length > 0 };
  });
}

async function insertCursors(
  trx: Knex.Transaction,
  saleId: string,
  generation: number,
  segments: number,
): Promise<void> {
  await trx.raw(
    'INSERT INTO segment_cursors (sale_id, segment, generation) SELECT ?, n, ? FROM generate_series(0, ? - 1) AS n',
    [saleId, generation, segments],
  );
}

/** @param from see `loadBuyers`. @returns the number of loaded buyers */
async function loadAndPublish(
  db: Database,
  backend: Backend,
  row: SaleRow,
  from: string,
  progress: OnProgress,
): Promise<number> {
  const buyers = await loadBuyers(db, backend, row, from, (done, total) =>
    progress({ step: 'load', done, total }),
  );
  await publish(db, backend, row, progress);
  return buyers;
}

/**
 * Publishes a sale that is loaded.
 * @throws StaleGeneration if a later generation has begun, or a surplus segment is there again
 */
async function publish(db: Database, backend: Backend, row: SaleRow, progress: OnProgress): Promise<void> {
  const { sale, generation } = row;
  progress({ step: 'publish', done: 0, total: 1 });
  const surplus = await backend.sales.olderSegments({ saleId: sale.id, generation }, sale.segments);
  if (surplus.length > 0) throw new StaleGeneration(sale.id, generation);
  await publishAsItIs(db, backend, row);
  progress({ step: 'publish', done: 1, total: 1 });
}

/**
 * Publishes a sale that is loaded and was never published. Only a deleted sale with the same id can have surplus segments: they
 * are removed. @throws StaleGeneration if a later generation has begun
 */
export async function publishNew(
  db: Database,
  backend: Backend,
  row: SaleRow,
  progress: OnProgress = () => {},
): Promise<void> {
  const { sale, generation } = row;
  progress({ step: 'publish', done: 0, total: 1 });
  await backend.sales.removeSegments({ saleId: sale.id, generation }, sale.segments);
  await publishAsItIs(db, backend, row);
  progress({ step: 'publish', done: 1, total: 1 });
}

/**
 * Publishes the sale as its row says, and then applies what has changed in the row meanwhile: before the publication the
 * backend can't apply a pause or a change. The row is not locked, because a rebuild that stalls must not block orders.
 *
 * Changes may have cancelled each other out. Then the backend needs their revision all the same: the first of them may still arrive
 * (sales/follow-state.ts). Nodes of version 0.1.0 raise no revision.
 */
async function publishAsItIs(db: Database, backend: Backend, { sale, generation }: SaleRow): Promise<void> {
  const row = await readSale(db, sale.id);
  if (row?.generation !== generation) {
    // The sale was deleted or archived meanwhile: what was loaded after that must not remain in the backend.
    // Segments of an archived sale that sell again are left to the next rebuild, which salvages them.
    if (!row) await backend.sales.archive({ saleId: sale.id, generation: generation + 1 });
    else if (row.archivedAt)
      await backend.sales.archive({ saleId: sale.id, generation: row.generation }, 'idle');
    throw new StaleGeneration(sale.id, generation);
  }
  await backend.sales.publish(row);
  const now = await readSale(db, sale.id);
  const isSame = now?.state === row.state && isDeepStrictEqual(now.sale, row.sale);
  if (!isSame || now.revision !== row.revision) await followState(db, backend, sale.id);
}
