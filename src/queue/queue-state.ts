/** What Postgres knows about the queue of a sale as a whole: what operators have set, and what the head reported last. */
import { type Database, rows } from '../postgres/database.ts';

export interface QueueState {
  readonly saleId: string;
  /** The number of the newest place; 0 if there is none. */
  readonly lastNumber: number;
  /** No place of a rank up to this one waits. */
  readonly head: number;
  /** Offers may have been made up to this rank, or up to NEAR_RANKS behind the head. */
  readonly reach: number;
  /**
   * The first hopeless rank: the present places before it could take all units that are free or offered. `undefined`: none is
   * hopeless.
   */
  readonly hopelessFrom: number | undefined;
  /** Units that nobody has; `undefined`: the head has not reported yet, or the window begins later. */
  readonly freeUnits: number | undefined;
  /** Offers made since the queue began. */
  readonly offersMade: number;
  /** An operator has stopped the offers. */
  readonly isStopped: boolean;
  /** Offers made in a minute at most; `undefined`: no bound. */
  readonly perMinute: number | undefined;
  /** Offers that the pace allows now, if there is one. */
  readonly pace: number;
  /** Offers that may still be made while they are stopped. */
  readonly allowed: number;
  /** When the head reported this last. */
  readonly toldAt: Date | undefined;
  /** Names that report; `undefined`: there was none. */
  readonly report: string | undefined;
  readonly draw: DrawState;
}

/** A queue as it was read: names its sale and its ranks. */
export type ReadQueue = Pick<QueueState, 'saleId' | 'draw'>;

export interface DrawState {
  /** 32 bytes. It must not leave this program before the draw. */
  readonly seed: Uint8Array;
  /** Makes the salts of the entries' digests (draw/entry-digest.ts). */
  readonly saltKey: Uint8Array;
  /** The draw has been: places with numbers up to `entries` were shuffled. */
  readonly drawn: { readonly entries: number; readonly entriesHash: string; readonly at: Date } | undefined;
}

interface RawQueue {
  sale_id: string;
  last_number: string;
  head: string;
  reach: string;
  hopeless_from: string | null;
  free_units: string | null;
  offers_made: string;
  is_stopped: boolean;
  per_minute: number | null;
  pace: number;
  allowed: string;
  told_at: Date | null;
  report: string | null;
  seed: Uint8Array;
  salt_key: Uint8Array;
  entries: string | null;
  entries_hash: string | null;
  drawn_at: Date | null;
}

/**
 * Offers up to this many ranks behind the head are always possible, so no reach is stored for them. One round makes no more offers than
 * this (head/head.ts).
 */
export const NEAR_RANKS = 2_048;

const optional = (value: string | number | null) => (value === null ? undefined : Number(value));

/** The report in a row of `queues`, as SQL: the time in microseconds, because a Date has no more than milliseconds. */
export const REPORT = '(extract(epoch FROM told_at) * 1000000)::bigint::text';

/**
 * Whether a row of `queues` is the queue that was read, with the same ranks, as SQL. If its places were drawn since, or the sale was
 * deleted and made again, what a head has found out is about other places. Bindings: `sameQueue`.
 */
export const IS_SAME_QUEUE = 'sale_id = ? AND seed = ? AND entries_hash IS NOT DISTINCT FROM ?';

export const sameQueue = ({ saleId, draw }: ReadQueue) => [
  saleId,
  Buffer.from(draw.seed),
  draw.drawn?.entriesHash ?? null,
];

/** @returns `undefined` for a sale that never had a queue */
export async function readQueue(db: Database, saleId: string): Promise<QueueState | undefined> {
  const [row] = await rows<RawQueue>(
    db,
    `SELECT *, stockade_pace(q) AS pace, ${REPORT} AS report FROM queues q WHERE sale_id = ?`,
    [saleId],
  );
  return row && stateOf(row);
}

function stateOf(row: RawQueue): QueueState {
  return {
    saleId: row.sale_id,
    lastNumber: Number(row.last_number),
    head: Number(row.head),
    reach: Number(row.reach),
    hopelessFrom: optional(row.hopeless_from),
    freeUnits: optional(row.free_units),
    offersMade: Number(row.offers_made),
    isStopped: row.is_stopped,
    perMinute: optional(row.per_minute),
    pace: row.pace,
    allowed: Number(row.allowed),
    toldAt: row.told_at ?? undefined,
    report: row.report ?? undefined,
    draw: { seed: row.seed, saltKey: row.salt_key, drawn: drawnOf(row) },
  };
}

function drawnOf({ entries, entries_hash, drawn_at }: RawQueue): DrawState['drawn'] {
  if (drawn_at === null) return undefined;
  return { entries: Number(entries), entriesHash: entries_hash!, at: drawn_at };
}
