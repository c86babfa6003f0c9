/**
 * The Postgres part of operators' changes to a sale: one transaction each, with its row in the ledger. The sale's row
 * is locked, so that changes are ordered, in the ledger too.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import type { Sale, SaleState } from '../engine/contract.ts';
import { InvalidInput } from '../engine/errors.ts';
import { MAX_STOCK } from '../engine/limits.ts';
import type { Author } from '../engine/sale/author.ts';
import { QUEUE_DEFAULTS } from '../engine/sale/queue-json.ts';
import { EDITS, type SaleChange, type SaleEdit } from '../engine/sale/sale-change.ts';
import { type Price, priceFaults } from '../engine/sale/sale-json.ts';
import { WrongState } from '../operations/sale-operations.ts';
import { transactionInTime } from '../postgres/changes/transaction-in-time.ts';
import type { Database } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';
import { refuseBesideOlderNodes } from '../postgres/older-nodes.ts';
import { type NewMovement, readWantedSegments, writeMovement } from './ledger.ts';
import { changeQueue } from './queue-change.ts';
import { readPresentSale, type SaleRow, timestamp } from './sale-rows.ts';

/**
 * All changes but a withdrawal, which begins in the backend (withdrawal.ts), and archiving, which is the end of a
 * rebuild (rebuild/archive.ts).
 */
export type PlainChange = Exclude<SaleChange, { action: 'withdraw' | 'archive' }>;

interface ChangeOptions {
  readonly isWanted?: (trx: Knex.Transaction) => Promise<boolean>;
  readonly latestMs?: number | undefined;
}

/** For `refuseBesideOlderNodes`. */
export const SELL_WITHOUT_TOKENS = 'sell without purchase tokens';

type StateAction = 'pause' | 'resume' | 'close';

/** For each action: the new state, the states that allow it, and its word in error messages. */
const STATES: Record<StateAction, { to: SaleState; from: readonly SaleState[]; called: string }> = {
  pause: { to: 'paused', from: ['open', 'paused'], called: 'paused' },
  resume: { to: 'open', from: ['paused', 'open'], called: 'resumed' },
  close: { to: 'closed', from: ['open', 'paused', 'closed'], called: 'closed' },
};

/**
 * Makes the change in Postgres; a change to the present value does nothing. The caller applies it to the backend
 * (movements.ts).
 * @param isWanted asked under the lock on the sale's row; if not, nothing is changed
 * @param latestMs as for `transactionInTime`
 * @throws UnknownSale, SaleArchived, WrongState, InvalidInput; StockadeError `unavailable` if older nodes prevent it; as
 * `transactionInTime`
 */
export async function makeChange(
  db: Database,
  saleId: string,
  change: PlainChange,
  author: Author,
  { isWanted = async () => true, latestMs }: ChangeOptions = {},
): Promise<void> {
  await despiteDeadlocks(() =>
    transactionInTime(db, latestMs, async (trx) => {
      const row = await lockSale(trx, saleId);
      if (!(await isWanted(trx))) return;
      const movement = await applyTo(trx, row, change);
      if (!movement) return;
      await trx.raw('UPDATE sales SET revision = revision + 1 WHERE id = ?', [saleId]);
      await writeMovement(trx, { saleId, generation: row.generation, ...movement }, author);
    }),
  );
}

/** Locks the row of a sale that is to be changed until the transaction ends. @throws UnknownSale, SaleArchived */
export async function lockSale(trx: Knex.Transaction, saleId: string): Promise<SaleRow> {
  await trx.raw('SELECT 1 FROM sales WHERE id = ? FOR UPDATE', [saleId]);
  return readPresentSale(trx, saleId);
}

/** What the ledger notes of a change; `undefined` if nothing has changed. */
type Noted = Pick<NewMovement, 'action' | 'units' | 'detail'> | undefined;

function applyTo(trx: Knex.Transaction, row: SaleRow, change: PlainChange): Promise<Noted> {
  switch (change.action) {
    case 'top-up':
      return topUp(trx, row, change.units);
    case 'window':
      return setWindow(trx, row, change);
    case 'require-token':
      return requireToken(trx, row, change.requireToken);
    case 'edit':
      return edit(trx, row, change);
    case 'queue':
      return changeQueue(trx, row, change);
    case 'resize':
      return resize(trx, row, change.segments);
    default:
      return setState(trx, row, change.action);
  }
}

async function setState(trx: Knex.Transaction, row: SaleRow, action: StateAction): Promise<Noted> {
  const { to, from, called } = STATES[action];
  if (!from.includes(row.state)) throw new WrongState(row.sale.id, row.state, called);
  if (row.state === to) return undefined;
  await trx.raw(
    "UPDATE sales SET state = ?, closed_at = CASE WHEN ? = 'closed' THEN now() END WHERE id = ?",
    [to, to, row.sale.id],
  );
  if (row.state === 'paused') await renewOffers(trx, row.sale);
  return { action, detail: { from: row.state } };
}

/** At the end of a pause: nobody could accept an offer during it. The queue may have been turned off meanwhile. */
async function renewOffers(trx: Knex.Transaction, { id, queue, hadQueue }: Sale): Promise<void> {
  if (!queue && !hadQueue) return;
  const { offerSeconds } = queue ?? QUEUE_DEFAULTS;
  await trx.raw(
    `UPDATE orders SET expires_at = greatest(expires_at, now() + ? * interval '1 second')
     WHERE offer_of IS NOT NULL AND status = 'unpaid'
       AND order_id = ANY (ARRAY(SELECT order_id FROM places WHERE sale_id = ? AND state = 'offered'))`,
    [offerSeconds, id],
  );
}

async function topUp(trx: Knex.Transaction, { sale, state, stock }: SaleRow, units: number): Promise<Noted> {
  if (state === 'closed') throw new WrongState(sale.id, state, 'topped up');
  if (stock + units > MAX_STOCK) {
    throw new InvalidInput('the change is not valid', [
      { field: 'units', problem: `must leave at most ${MAX_STOCK} units in stock; there are ${stock} now` },
    ]);
  }
  await trx.raw('UPDATE sales SET stock = stock + ? WHERE id = ?', [units, sale.id]);
  return { action: 'top-up', units };
}

async function setWindow(
  trx: Knex.Transaction,
  { sale, state }: SaleRow,
  change: Extract<SaleChange, { action: 'window' }>,
): Promise<Noted> {
  if (state === 'closed') throw new WrongState(sale.id, state, 'given another window');
  const startsAt = change.startsAt ?? sale.startsAt;
  const endsAt = change.endsAt === undefined ? sale.endsAt : (change.endsAt ?? undefined);
  if (endsAt !== undefined && endsAt <= startsAt) {
    throw new InvalidInput('the change is not valid', [
      {
        field: change.endsAt === undefined ? 'startsAt' : 'endsAt',
        problem: `must leave the end after the start; the window would be ${timestamp(startsAt)} to ${timestamp(endsAt)}`,
      },
    ]);
  }
  if (startsAt === sale.startsAt && endsAt === sale.endsAt) return undefined;
  const [from, to] = window(startsAt, endsAt);
  const [keepsStart, keepsEnd] = [startsAt === sale.startsAt, endsAt === sale.endsAt];
  // Since the end, nodes have noted nobody as heard of. Until new marks come, everybody counts as present.
  await trx.raw(
    'DELETE FROM queue_presence WHERE sale_id = ? AND EXISTS (SELECT 1 FROM sales WHERE id = ? AND ends_at <= now())',
    [sale.id, sale.id],
  );
  // Only what changes: an older version has accepted times that Postgres does not read in this form.
  await trx.raw(
    `UPDATE sales SET starts_at = coalesce(?::timestamptz, starts_at),
       ends_at = CASE WHEN ? THEN ends_at ELSE ?::timestamptz END WHERE id = ?`,
    [keepsStart ? null : from!, keepsEnd, keepsEnd ? null : to!, sale.id],
  );
  // A draw under way has fixed its entries. The draw of the new window has those who come until then, too.
  if (!keepsStart)
    await trx.raw('UPDATE queues SET entries = NULL WHERE sale_id = ? AND drawn_at IS NULL', [sale.id]);
  return {
    action: 'window',
    detail: { from: window(sale.startsAt, sale.endsAt), to: [from, to] },
  };
}

async function requireToken(trx: Knex.Transaction, { sale, state }: SaleRow, to: boolean): Promise<Noted> {
  if (state === 'closed') throw new WrongState(sale.id, state, 'changed');
  if (sale.requireToken === to) return undefined;
  if (to) await refuseBesideOlderNodes(trx, SELL_WITHOUT_TOKENS);
  await trx.raw('UPDATE sales SET require_token = ? WHERE id = ?', [to, sale.id]);
  return { action: 'require-token', detail: { from: sale.requireToken, to } };
}

const COLUMNS: Readonly<Record<keyof SaleEdit, string>> = {
  title: 'title',
  perBuyerLimit: 'per_buyer_limit',
  payWithinSeconds: 'pay_within_seconds',
  priceMinor: 'price_minor',
  faceValueMinor: 'face_value_minor',
  currency: 'currency',
  metadata: 'metadata',
};

/** The ledger gets the old and the new values of the fields that differ, `null` for one that is missing. */
async function edit(trx: Knex.Transaction, { sale, state }: SaleRow, change: SaleEdit): Promise<Noted> {
  if (state === 'closed') throw new WrongState(sale.id, state, 'edited');
  if (change.perBuyerLimit !== undefined && change.perBuyerLimit < sale.perBuyerLimit) {
    const problem = `must be at least ${sale.perBuyerLimit}, the limit now, because buyers may hold that many units`;
    throw new InvalidInput('the change is not valid', [{ field: 'perBuyerLimit', problem }]);
  }
  const edited = EDITS.filter(
    (name) => change[name] !== undefined && !isDeepStrictEqual(change[name], sale[name] ?? null),
  );
  if (edited.length === 0) return undefined;
  refuseBareAmount(sale, change, edited);
  if (edited.includes('perBuyerLimit'))
    await refuseBesideOlderNodes(trx, 'would not load all orders of a sale whose limit was raised');
  const value = (name: keyof SaleEdit) =>
    name === 'metadata' ? JSON.stringify(change[name]) : (change[name] as string | number | null);
  await trx.raw(`UPDATE sales SET ${edited.map((name) => `${COLUMNS[name]} = ?`).join(', ')} WHERE id = ?`, [
    ...edited.map(value),
    sale.id,
  ]);
  const onlyEdited = (values: SaleEdit) =>
    Object.fromEntries(edited.map((name) => [name, values[name] ?? null]));
  return { action: 'edit', detail: { from: onlyEdited(sale), to: onlyEdited(change) } };
}

/** After an edit of a price, no amount lacks its currency. A sale of an older version may lack it: its other fields can be edited. */
function refuseBareAmount(sale: Sale, change: SaleEdit, edited: readonly (keyof SaleEdit)[]): void {
  const after = (name: keyof Price) =>
    change[name] === undefined ? sale[name] : (change[name] ?? undefined);
  const price = Object.fromEntries(PRICE.map((name) => [name, after(name)])) as Partial<Price>;
  const faults = priceFaults(price)
    .filter(({ field }) => edited.includes(field) || edited.includes('currency'))
    .map((fault) =>
      edited.includes(fault.field)
        ? fault
        : { ...fault, problem: 'stays, and needs a `currency`: remove the amount too' },
    );
  if (faults.length > 0) throw new InvalidInput('the change is not valid', faults);
}

const PRICE = ['priceMinor', 'faceValueMinor', 'currency'] as const satisfies readonly (keyof Price)[];

/** Only records the request: the next generation is built with that number. */
async function resize(trx: Knex.Transaction, { sale, state }: SaleRow, to: number): Promise<Noted> {
  if (state === 'closed') throw new WrongState(sale.id, state, 'resized');
  const from = (await readWantedSegments(trx, sale.id)) ?? sale.segments;
  return from === to ? undefined : { action: 'resize', detail: { from, to } };
}

const window = (startsAt: number, endsAt: number | undefined) => [
  timestamp(startsAt),
  endsAt === undefined ? null : timestamp(endsAt),
];
