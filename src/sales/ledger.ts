/**
 * The ledger: one row for the creation of a sale and for each change since, with author and reason. The author is an operator, or
 * Stockade itself. The row is written in the transaction of the change. It is open until the backend has applied the change
 * (movements.ts).
 */
import type { Knex } from 'knex';
import type { Author } from '../engine/sale/author.ts';
import type { NotedAction } from '../engine/sale/sale-change.ts';
import { MAX_PAGE, type PageQuery, pageOf } from '../operations/checked-input.ts';
import type { LedgerEntry, LedgerPage } from '../operations/sale-operations.ts';
import { secondsSince } from '../postgres/age.ts';
import { type Database, rows } from '../postgres/database.ts';
import { type SaleRow, settingsOf } from './sale-rows.ts';

export interface Movement {
  readonly id: string;
  readonly saleId: string;
  readonly action: NotedAction;
  /** Units that it added to the sale's total stock. */
  readonly units: number;
  /** The sale's generation when the change was made. */
  readonly generation: number;
}

export interface OpenMovement extends Movement {
  /** Seconds since the change was made. */
  readonly ageS: number;
}

export interface NewMovement {
  readonly saleId: string;
  readonly action: NotedAction;
  readonly units?: number;
  readonly generation: number;
  /** Values before and after, for readers of the ledger. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** @returns the movement's id. Within a sale ids rise in the order of the changes, if its row in `sales` is locked. */
export async function writeMovement(
  trx: Knex.Transaction,
  { saleId, action, units = 0, generation, detail = {} }: NewMovement,
  { actor, reason }: Author,
): Promise<string> {
  const [row] = await rows<{ id: string }>(
    trx,
    `INSERT INTO stock_movements (sale_id, units, reason, actor, action, detail, generation)
     VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id::text`,
    [saleId, units, reason, actor, action, JSON.stringify(detail), generation],
  );
  return row!.id;
}

/** The open movements of a sale, the oldest first. */
export async function readOpenMovements(db: Knex, saleId: string): Promise<OpenMovement[]> {
  const found = await rows<{
    id: string;
    sale_id: string;
    action: NotedAction;
    units: string;
    generation: number;
    age_s: string;
  }>(
    db,
    `SELECT id::text, sale_id, action, units, generation, ${secondsSince('moved_at')} AS age_s FROM stock_movements
     WHERE sale_id = ? AND applied_at IS NULL ORDER BY stock_movements.id`,
    [saleId],
  );
  return found.map(({ sale_id, units, age_s, ...row }) => ({
    ...row,
    saleId: sale_id,
    units: Number(units),
    ageS: Number(age_s),
  }));
}

/** The requested number of segments, if a resize of the sale is open. */
export async function readWantedSegments(db: Knex, saleId: string): Promise<number | undefined> {
  const [open] = await rows<{ wanted: number }>(
    db,
    `SELECT (detail->>'to')::integer AS wanted FROM stock_movements
     WHERE sale_id = ? AND action = 'resize' AND applied_at IS NULL ORDER BY stock_movements.id DESC LIMIT 1`,
    [saleId],
  );
  return open?.wanted;
}

/** Sales with an open resize, and its age in seconds. */
export async function readResizes(db: Database): Promise<{ saleId: string; ageS: number }[]> {
  const found = await rows<{ sale_id: string; age_s: string }>(
    db,
    `SELECT sale_id, ${secondsSince('min(moved_at)')} AS age_s FROM stock_movements
     WHERE action = 'resize' AND applied_at IS NULL GROUP BY sale_id`,
  );
  return found.map(({ sale_id, age_s }) => ({ saleId: sale_id, ageS: Number(age_s) }));
}

export async function closeMovement(db: Knex, id: string): Promise<void> {
  await db.raw('UPDATE stock_movements SET applied_at = now() WHERE id = ? AND applied_at IS NULL', [id]);
}

/**
 * Closes all open movements of a sale, because a state built from Postgres now includes them. A withdrawal that is
 * not done is void: its units are still in Postgres. That the sale was archived stays open until the backend has
 * followed.
 */
export async function coverMovements(trx: Knex.Transaction, saleId: string): Promise<void> {
  await trx.raw(
    `UPDATE stock_movements SET applied_at = now(),
       detail = CASE WHEN action = 'withdraw' THEN detail - 'undoing' || '{"void":true}' ELSE detail END
     WHERE sale_id = ? AND action <> 'archive' AND applied_at IS NULL`,
    [saleId],
  );
}

/**
 * Writes that a sale was archived, in a row that is open until the backend holds nothing of the sale. If such a row is
 * open already, an earlier attempt has died, and this one finishes it.
 */
export async function openArchive(
  trx: Knex.Transaction,
  { saleId, generation }: Pick<NewMovement, 'saleId' | 'generation'>,
  author: Author,
): Promise<void> {
  const open = await readOpenMovements(trx, saleId);
  if (open.some(({ action }) => action === 'archive')) return;
  await writeMovement(trx, { saleId, action: 'archive', generation }, author);
}

export async function closeArchive(db: Knex, saleId: string): Promise<void> {
  await db.raw(
    `UPDATE stock_movements SET applied_at = now()
     WHERE sale_id = ? AND action = 'archive' AND applied_at IS NULL`,
    [saleId],
  );
}

/** A page of the entries, from the creation to the newest change. */
export async function readLedger(
  db: Database,
  row: SaleRow,
  { after, limit = MAX_PAGE }: PageQuery,
): Promise<LedgerPage> {
  const found = await readEntries(db, row.sale.id, after ?? '0', limit + 1);
  const isNoted = after !== undefined || found[0]?.action === 'create';
  const entries = isNoted ? found : [await unnotedCreation(db, row), ...found];
  const { page, next } = pageOf(entries, limit, ({ id }) => id);
  return { ledger: page, next };
}

/** Entries with ids above `after`, the oldest first. @param limit missing: all */
async function readEntries(
  db: Database,
  saleId: string,
  after: string,
  limit?: number,
): Promise<LedgerEntry[]> {
  const found = await rows<{
    id: string;
    moved_at: Date;
    action: LedgerEntry['action'];
    units: string;
    actor: string;
    reason: string;
    detail: Record<string, unknown>;
    open: boolean;
  }>(
    db,
    `SELECT id::text, moved_at, action, units, actor, reason, detail, applied_at IS NULL AS open
     FROM stock_movements WHERE sale_id = ? AND stock_movements.id > ?::bigint ORDER BY stock_movements.id LIMIT ?`,
    [saleId, after, limit ?? null],
  );
  return found.map(({ id, moved_at, units, open, ...rest }) => ({
    id,
    at: moved_at.toISOString(),
    units: Number(units),
    ...rest,
    applied: !open,
  }));
}

/**
 * The creation entry of a sale that was created by a version that wrote none. If a setting was changed since, its first change has
 * the initial value. The entry's id is 0, which no row has.
 */
async function unnotedCreation(db: Database, { sale, createdAt }: SaleRow): Promise<LedgerEntry> {
  const changes = await readEntries(db, sale.id, '0');
  const before = (action: NotedAction) => changes.find((change) => change.action === action)?.detail.from;
  const edited = changes.filter(({ action }) => action === 'edit').map(({ detail }) => detail.from as object);
  const { metadata: _, ...beforeEdits } = withoutNulls(Object.assign({}, ...edited.reverse()));
  const [startsAt, endsAt] = (before('window') as [string, string | null] | undefined) ?? [];
  const detail = {
    ...settingsOf(sale),
    ...beforeEdits,
    ...(before('resize') !== undefined && { segments: before('resize') }),
    ...(before('require-token') !== undefined && { requireToken: before('require-token') }),
    ...(startsAt !== undefined && { startsAt, endsAt: endsAt ?? undefined }),
  };
  return {
    ...{ id: '0', at: createdAt.toISOString(), action: 'create', units: 0 },
    ...{ actor: undefined, reason: '', detail, applied: true },
  };
}

/** Undefined where the ledger has `null`. */
function withoutNulls(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value ?? undefined]));
}
