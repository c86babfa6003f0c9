import type { Knex } from 'knex';
import type { QueueSettings, Sale, SaleState } from '../engine/contract.ts';
import { SALE_ID_PATTERN } from '../engine/limits.ts';
import type { Author } from '../engine/sale/author.ts';
import { QUEUE_DEFAULTS, type QueueOrder } from '../engine/sale/queue-json.ts';
import { saleToJson } from '../engine/sale/sale-json.ts';
import { SaleArchived, UnknownSale } from '../operations/sale-operations.ts';
import { rows } from '../postgres/database.ts';
import { newSaltKey } from '../queue/draw/entry-digest.ts';
import { newSeed } from '../queue/draw/seed.ts';

/** A sale as stored in Postgres. */
export interface SaleRow {
  readonly sale: Sale;
  readonly state: SaleState;
  /** 0 if its state in the backend was never built. */
  readonly generation: number;
  /** Counts the operators' changes: with each one it grows (follow-state.ts). */
  readonly revision: number;
  /** Units not yet sold. */
  readonly stock: number;
  /** `undefined`: not counted yet (live-orders.ts). */
  readonly liveOrders: number | undefined;
  readonly createdAt: Date;
  /** Since when the sale is in Postgres alone. `undefined`: it is not archived. */
  readonly archivedAt: Date | undefined;
}

const ALL = 2 ** 31 - 1;

/** A row of `sales`. */
export interface RawSale {
  id: string;
  title: string;
  initial_stock: string;
  stock: string;
  live_orders: string | null;
  segments: number;
  per_buyer_limit: number;
  require_token: boolean;
  starts_at: Date;
  ends_at: Date | null;
  state: SaleState;
  generation: number;
  revision: string;
  pay_within_seconds: number | null;
  price_minor: string | null;
  face_value_minor: string | null;
  currency: string | null;
  shop_id: string | null;
  metadata: Record<string, unknown>;
  created_at: Date;
  archived_at: Date | null;
  queue: QueueOrder;
  offer_seconds: number;
  presence_seconds: number;
  max_waiting: number;
  fit: QueueSettings['fit'];
  had_queue: boolean;
}

/**
 * Inserts the sale and, as the first row of its ledger, its creation: one statement, so one transaction and one round
 * trip. The row moves no units and needs no work in the backend, so it counts as applied.
 * @returns false if a sale with this id exists, which is left unchanged
 */
export async function insertSale(db: Knex, sale: Sale, { actor, reason }: Author): Promise<boolean> {
  const queue = sale.queue ?? QUEUE_DEFAULTS;
  const inserted = await rows(
    db,
    `WITH made AS (
       INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, require_token, starts_at, ends_at,
         pay_within_seconds, price_minor, face_value_minor, currency, shop_id, metadata,
         queue, offer_seconds, presence_seconds, max_waiting, fit)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING id, queue
     ), lined AS (
       INSERT INTO queues (sale_id, seed, salt_key) SELECT id, ?::bytea, ?::bytea FROM made WHERE queue <> 'off'
     ), noted AS (
       INSERT INTO stock_movements (sale_id, units, reason, actor, action, detail, applied_at)
       SELECT id, 0, ?, ?, 'create', ?::jsonb, now() FROM made
     )
     SELECT id FROM made`,
    [
      sale.id,
      sale.title,
      sale.stock,
      sale.stock,
      sale.segments,
      sale.perBuyerLimit,
      sale.requireToken,
      timestamp(sale.startsAt),
      sale.endsAt === undefined ? null : timestamp(sale.endsAt),
      sale.payWithinSeconds ?? null,
      sale.priceMinor ?? null,
      sale.faceValueMinor ?? null,
      sale.currency ?? null,
      sale.shopId ?? null,
      JSON.stringify(sale.metadata),
      sale.queue?.order ?? 'off',
      queue.offerSeconds,
      queue.presenceSeconds,
      queue.maxWaiting,
      queue.fit,
      Buffer.from(newSeed()),
      Buffer.from(newSaltKey()),
      reason,
      actor,
      JSON.stringify(settingsOf(sale)),
    ],
  );
  return inserted.length === 1;
}

/** For Postgres. Of a `Date`, pg sends the local time with a zone in whole minutes, which is not exact for times long ago. */
export const timestamp = (ms: number) => new Date(ms).toISOString();

/** A sale's initial settings, for the ledger: all but its id and the metadata. */
export function settingsOf(sale: Sale): Readonly<Record<string, unknown>> {
  const { id: _, metadata: __, ...settings } = saleToJson(sale);
  return settings;
}

/** @throws UnknownSale */
export async function readKnownSale(db: Knex, saleId: string): Promise<SaleRow> {
  const row = await readSale(db, saleId);
  if (!row) throw new UnknownSale(saleId);
  return row;
}

/** For work that needs the backend. @throws UnknownSale, SaleArchived */
export async function readPresentSale(db: Knex, saleId: string): Promise<SaleRow> {
  const row = await readKnownSale(db, saleId);
  if (row.archivedAt) throw new SaleArchived(saleId);
  return row;
}

/**
 * A sale that is being deleted is not found. An id that no sale can have is not queried: it may hold what Postgres
 * refuses, such as a NUL.
 */
export async function readSale(db: Knex, saleId: string): Promise<SaleRow | undefined> {
  if (!SALE_ID_PATTERN.test(saleId)) return undefined;
  const [row] = await rows<RawSale>(db, 'SELECT * FROM sales WHERE id = ? AND deleting_since IS NULL', [
    saleId,
  ]);
  return row && decodeSale(row);
}

/** All sales that are not being deleted, the newest first. @param built only those that a backend has to hold */
export async function readSales(
  db: Knex,
  { built = false, limit = ALL }: { built?: boolean; limit?: number } = {},
): Promise<SaleRow[]> {
  const which = built ? 'AND generation > 0 AND archived_at IS NULL' : '';
  const sql = `SELECT * FROM sales WHERE deleting_since IS NULL ${which} ORDER BY created_at DESC, id LIMIT ?`;
  return (await rows<RawSale>(db, sql, [limit])).map(decodeSale);
}

/** @param row with all columns of `sales` */
export function decodeSale(row: RawSale): SaleRow {
  const optional = (value: string | number | null) => (value === null ? undefined : Number(value));
  return {
    sale: {
      id: row.id,
      title: row.title,
      stock: Number(row.initial_stock),
      segments: row.segments,
      startsAt: row.starts_at.getTime(),
      endsAt: row.ends_at?.getTime(),
      perBuyerLimit: row.per_buyer_limit,
      requireToken: row.require_token,
      payWithinSeconds: optional(row.pay_within_seconds),
      priceMinor: optional(row.price_minor),
      faceValueMinor: optional(row.face_value_minor),
      currency: row.currency ?? undefined,
      shopId: row.shop_id ?? undefined,
      metadata: row.metadata,
      ...(row.queue !== 'off' ? { queue: queueOf(row, row.queue) } : row.had_queue && { hadQueue: true }),
    },
    state: row.state,
    generation: row.generation,
    revision: Number(row.revision),
    stock: Number(row.stock),
    liveOrders: optional(row.live_orders),
    createdAt: row.created_at,
    archivedAt: row.archived_at ?? undefined,
  };
}

function queueOf(row: RawSale, order: QueueSettings['order']): QueueSettings {
  const {
    offer_seconds: offerSeconds,
    presence_seconds: presenceSeconds,
    max_waiting: maxWaiting,
    fit,
  } = row;
  return { order, offerSeconds, presenceSeconds, maxWaiting, fit };
}
