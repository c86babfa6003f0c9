/**
 * Withdraws unsold units from a sale for good. The units leave the segments first, so that no buyer gets them. They leave
 * Postgres last; until then they are part of the sale's stock there.
 *
 *   open in the ledger, no units ──taken out of the segments──> enough of them ──one transaction──> done
 *              │                                └──too few──> returned ──> void
 *              ├──the process that made it has died──> undoing ──returned──> void
 *              └──the sale is rebuilt: its units are loaded again──> void
 *
 * The last transaction checks that the withdrawal is still open and that the generation is the one that the units
 * were taken from. So if the process was only slow, either it or the reconciler, which undoes the withdrawal, comes too
 * late and changes nothing. The segments refuse late commands of that process (give-back.lua).
 *
 * Meanwhile readers see the units as "withdrawals under way". A sale has one withdrawal at a time.
 */
import pLimit from 'p-limit';
import type { Backend } from '../engine/contract.ts';
import { StaleGeneration, StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import { levelDown } from '../engine/sale/split-evenly.ts';
import { InsufficientStock } from '../operations/sale-operations.ts';
import { transactionInTime } from '../postgres/changes/transaction-in-time.ts';
import { type Database, rows } from '../postgres/database.ts';
import type { FollowOptions } from './follow-state.ts';
import { type Movement, readOpenMovements, writeMovement } from './ledger.ts';
import { lockSale } from './sale-changes.ts';

const PARALLEL_SEGMENTS = 16;
/** Buyers take units meanwhile. So if too few are out, the segments are read again, up to this many times. */
const MAX_REPEATS = 5;

interface Wanted {
  readonly saleId: string;
  readonly units: number;
  /** As for `transactionInTime`. */
  readonly latestMs: number | undefined;
}

interface Withdrawal extends Wanted {
  readonly movement: Movement;
  readonly segments: number;
}

/**
 * @param latestMs as for `transactionInTime`, for its first and its last transaction
 * @throws UnknownSale; SaleArchived; InsufficientStock, and nothing was changed; StaleGeneration or StockadeError `unavailable` if the
 * sale was rebuilt meanwhile, which has undone it; as `transactionInTime`
 */
export async function withdraw(
  db: Database,
  backend: Backend,
  saleId: string,
  units: number,
  author: Author,
  latestMs?: number,
): Promise<void> {
  const withdrawal = await open(db, { saleId, units, latestMs }, author);
  const remaining = await takeOut(backend, withdrawal);
  if (remaining === undefined) return finish(db, withdrawal);
  if (!(await undoWithdrawal(db, backend, withdrawal.movement))) throw undoneByOthers(saleId);
  throw new InsufficientStock(saleId, units, remaining);
}

/** The reconciler has undone the withdrawal, or a rebuild has. So the units that are left don't say why it failed. */
function undoneByOthers(saleId: string): StockadeError {
  return new StockadeError(
    'unavailable',
    `sale ${saleId} was rebuilt, or this took too long; nothing was withdrawn: try again`,
  );
}

async function open(db: Database, wanted: Wanted, author: Author): Promise<Withdrawal> {
  const { saleId, units, latestMs } = wanted;
  return transactionInTime(db, latestMs, async (trx) => {
    const { sale, generation, stock } = await lockSale(trx, saleId);
    const others = await readOpenMovements(trx, saleId);
    if (others.some(({ action }) => action === 'withdraw')) {
      throw new StockadeError(
        'busy',
        `another withdrawal from sale ${saleId} is under way: try again when it has ended`,
      );
    }
    if (stock < units) throw new InsufficientStock(saleId, units, stock);
    const entry = { saleId, action: 'withdraw' as const, generation };
    const id = await writeMovement(trx, { ...entry, detail: { wanted: units } }, author);
    return { ...wanted, movement: { ...entry, id, units: 0 }, segments: sale.segments };
  });
}

/** @returns `undefined` if all units are out; else the units left in the whole sale, including those that are out or in transit */
async function takeOut(
  backend: Backend,
  { movement, segments, units }: Withdrawal,
): Promise<number | undefined> {
  const { saleId, generation, id } = movement;
  for (let repeats = 0; ; repeats++) {
    const snapshot = await backend.sales.snapshot(saleId, segments, generation);
    const counters = snapshot.flatMap((segment) => segment.counters ?? []);
    // Rebuilt, or about to be: these segments say nothing about the units that the sale has left.
    if (counters.length < segments) throw new StaleGeneration(saleId, generation);
    const left = counters.map((counted) => counted.left);
    const out = counters.map(({ withdrawal }) => (withdrawal.movement === id ? withdrawal.units : 0));
    const missing = units - sum(out);
    if (missing <= 0) return undefined;
    const inTransit = sum(counters.map((counted) => counted.inTransit));
    if (sum(left) + inTransit < missing || repeats >= MAX_REPEATS) return sum(left) + sum(out) + inTransit;
    if (sum(left) < missing) {
      // A process may have died with them in transit, and no purchase or timer may come that finishes it.
      await backend.transfers.finish({ saleId, generation }, segments);
      continue;
    }
    await pLimit(PARALLEL_SEGMENTS).map(levelDown(left, missing), async (more, segment) => {
      if (more === 0) return;
      await backend.sales.withdraw({
        saleId,
        segment,
        generation,
        movement: id,
        units: out[segment]! + more,
      });
    });
  }
}

async function finish(db: Database, { movement, units, latestMs }: Withdrawal): Promise<void> {
  const { id, saleId, generation } = movement;
  await transactionInTime(db, latestMs, async (trx) => {
    const row = await lockSale(trx, saleId);
    const done = await rows(
      trx,
      `UPDATE stock_movements SET units = -?::bigint, applied_at = now()
       WHERE id = ? AND applied_at IS NULL AND detail->'undoing' IS NULL RETURNING id`,
      [units, id],
    );
    if (done.length === 0 || row.generation !== generation) throw undoneByOthers(saleId);
    await trx.raw('UPDATE sales SET stock = stock - ? WHERE id = ?', [units, saleId]);
  });
}

/**
 * Returns the units that are out for a withdrawal, unless it has ended meanwhile. If a node of version 0.1.0 has rebuilt the
 * sale, it has loaded the units, and left the movement open.
 * @param options `ifUnlocked` is about the movement's row here
 * @returns false if the withdrawal has ended, or its row is locked; then nothing was changed
 * @throws StaleGeneration
 */
export async function undoWithdrawal(
  db: Database,
  backend: Backend,
  { id, saleId, generation }: Movement,
  { ifUnlocked = false }: FollowOptions = {},
): Promise<boolean> {
  const unless = ifUnlocked ? 'SKIP LOCKED' : '';
  const [undoing] = await rows<{ segments: number; generation: number }>(
    db,
    `WITH mine AS (SELECT id FROM stock_movements WHERE id = ? FOR UPDATE ${unless})
     UPDATE stock_movements m SET detail = detail || '{"undoing":true}' FROM mine, sales s
     WHERE m.id = mine.id AND m.applied_at IS NULL AND s.id = m.sale_id RETURNING s.segments, s.generation`,
    [id],
  );
  if (!undoing) return false;
  const isLoaded = undoing.generation > generation;
  const all = Array.from({ length: isLoaded ? 0 : undoing.segments }, (_, segment) => segment);
  await pLimit(PARALLEL_SEGMENTS).map(all, (segment) =>
    backend.sales.giveBack({ saleId, segment, generation, movement: id }),
  );
  await backend.sales.reopen(saleId);
  await db.raw(
    `UPDATE stock_movements SET applied_at = now(), detail = detail - 'undoing' || '{"void":true}'
     WHERE id = ? AND applied_at IS NULL`,
    [id],
  );
  return true;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
