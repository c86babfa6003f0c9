/**
 * Who is still there. A buyer is present if a node has heard of its place, by a poll or an open stream, in this period of
 * `presenceSeconds` or in the one before. Postgres' clock counts the periods, so nodes whose clocks differ agree.
 *
 *   a node hears of places ──once a second──> their bits are set, in pages of PAGE_PLACES ──two periods later──> deleted
 *
 * The bits are in an unlogged table, which costs little, and which a crash of Postgres empties. A row for each sale, the mark, says
 * since when the bits are complete. Until two periods after that, everybody counts as present, and nobody is passed over.
 *
 * Another row for the sale says when somebody asked for a place last, or left one: then the head reports how the queue stands
 * (head/work.ts). With `presenceSeconds` 0 that row is all there is.
 */
import { texts } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';

/** Places in one row. As in migrations/023-queue.sql and 038-places-within-limit.sql. */
export const PAGE_PLACES = 4_096;
/** The period of the row that is the mark. */
const MARK = -1;
/** The period of the row that says when somebody asked for a place last. */
const ASKED = -2;
/** It is to be written this often while people ask … */
export const ASKED_EVERY_MS = 5_000;
/** … and counts for this long. Those who look at their place once in a minute keep the reports coming. */
const ASKED_COUNTS_S = 75;
/** A head tells once a second, and somewhat later on a busy machine. */
const MIN_OUTAGE_S = 2;

/** The number of the period at this instant, as SQL. @param seconds how long a period is, as SQL */
const periodOf = (seconds: string) => `floor(extract(epoch FROM now()) / ${seconds})::bigint`;
const PERIOD = periodOf('?');
/**
 * Whether bits of this period count, as SQL. The next period is there if Postgres' clock was set back. Later ones come from a node that
 * did not know yet that `presenceSeconds` was raised: they would count for years.
 */
const countsIn = (period: string) => `period BETWEEN ${period} - 1 AND ${period} + 1`;
const COUNTS = countsIn(PERIOD);
/** Whether the mark is so old that all bits of the present are there, as SQL. @param seconds how long a period is, as SQL */
const isOldMark = (seconds: string) => `since < now() - 2 * ${seconds} * interval '1 second'`;

/** Whether no head has told of the queue `q` for this time, or Postgres' clock was set by as much, as SQL. NULL if none ever has. */
export function isSilent(seconds: string): string {
  return `q.told_at NOT BETWEEN now() - ${seconds} * interval '1 second' AND now() + ${seconds} * interval '1 second'`;
}

/**
 * Whether the place of the row `p` is absent now, as SQL. The process that asks has read the bits before. It may have been frozen since,
 * and the buyer may have come back.
 */
export const IS_ABSENT = `EXISTS (SELECT 1 FROM sales s JOIN queue_presence m ON m.sale_id = s.id AND m.period = ${MARK}
    WHERE s.id = p.sale_id AND s.presence_seconds > 0 AND m.${isOldMark('s.presence_seconds')}
      AND NOT EXISTS (SELECT 1 FROM queue_presence h WHERE h.sale_id = s.id AND h.page = (p.number - 1) / ${PAGE_PLACES}
        AND h.${countsIn(periodOf('nullif(s.presence_seconds, 0)'))}
        AND get_bit(h.present, ((p.number - 1) % ${PAGE_PLACES})::integer) = 1))`;

export async function isAbsent(db: Database, saleId: string, number: number): Promise<boolean> {
  const found = await rows(
    db,
    `SELECT 1 FROM places p WHERE p.sale_id = ? AND p.number = ? AND ${IS_ABSENT}`,
    [saleId, number],
  );
  return found.length > 0;
}

/** Whether somebody has asked for a place of the sale `s` lately, as SQL. */
export const IS_ASKED = `EXISTS (SELECT 1 FROM queue_presence a WHERE a.sale_id = s.id AND a.period = ${ASKED}
  AND a.since > now() - ${ASKED_COUNTS_S} * interval '1 second')`;

/** Whether `tidyPresence` has something to do for the sale `s`: the mark is missing, or bits do not count any more. As SQL. */
export const IS_UNTIDY = `(s.presence_seconds > 0 AND (
  NOT EXISTS (SELECT 1 FROM queue_presence m WHERE m.sale_id = s.id AND m.period = ${MARK})
  OR EXISTS (SELECT 1 FROM queue_presence o WHERE o.sale_id = s.id AND o.period >= 0
    AND o.period < ${periodOf('nullif(s.presence_seconds, 0)')} - 1)))`;

/** Whether perhaps nobody could be heard of, because no head has told of the queue `q` of the sale `s` for too long, as SQL. */
export const IS_OUTAGE = `(s.presence_seconds > 0 AND ${isSilent(`greatest(s.presence_seconds, ${MIN_OUTAGE_S})`)})`;

/** The places whose bits are set. */
export class PresentPlaces {
  /** Everybody counts as present, also the numbers of places that wait no longer. */
  readonly isEverybody: boolean;
  readonly #pages: ReadonlyMap<number, string> | undefined;

  /** @param pages `undefined`: nobody notes who was heard of */
  constructor(pages: ReadonlyMap<number, string> | undefined, isEverybody: boolean) {
    this.#pages = pages;
    this.isEverybody = isEverybody;
  }

  has(number: number): boolean {
    return this.isEverybody || this.#pages?.get(pageOf(number))?.[bitOf(number)] === '1';
  }

  /** Only those that were heard of, also while all others count as present too; `undefined` if that is not noted. */
  get heardOf(): PresentPlaces | undefined {
    return this.#pages && new PresentPlaces(this.#pages, false);
  }
}

/** Nobody can be absent: for a queue whose `presenceSeconds` is 0. */
export const EVERYBODY = new PresentPlaces(undefined, true);

/** Sets the bits of these places, in the present period. @param presenceSeconds at least 1 */
export async function markPresent(
  db: Database,
  saleId: string,
  presenceSeconds: number,
  numbers: Iterable<number>,
): Promise<void> {
  const pages = pagesOf(numbers);
  if (pages.size === 0) return;
  // In the order of pages, so that two nodes never wait for each other.
  const sorted = [...pages].sort(([a], [b]) => a - b);
  await db.raw(
    `INSERT INTO queue_presence (sale_id, period, page, present)
     SELECT ?, ${PERIOD}, n.page, n.bits::bit(${PAGE_PLACES}) FROM unnest(?::bigint[], ?::text[]) AS n (page, bits)
     ON CONFLICT (sale_id, period, page) DO UPDATE SET present = queue_presence.present | excluded.present
       WHERE queue_presence.present | excluded.present <> queue_presence.present`,
    [
      saleId,
      presenceSeconds,
      `{${sorted.map(([page]) => page).join()}}`,
      texts(sorted.map(([, bits]) => bits)),
    ],
  );
}

/** Notes that somebody asks for a place now, or has left one. */
export async function markAsked(db: Database, saleId: string): Promise<void> {
  await db.raw(
    `INSERT INTO queue_presence (sale_id, period, page, present) VALUES (?, ${ASKED}, 0, B'0'::bit(${PAGE_PLACES}))
     ON CONFLICT (sale_id, period, page) DO UPDATE SET since = now()`,
    [saleId],
  );
}

/** Clears the bit of a place whose buyer has left. */
export async function markAbsent(db: Database, saleId: string, number: number): Promise<void> {
  await db.raw(
    `UPDATE queue_presence SET present = set_bit(present, ?, 0) WHERE sale_id = ? AND page = ? AND period >= 0`,
    [bitOf(number), saleId, pageOf(number)],
  );
}

/** @param presenceSeconds at least 1 */
export function readPresent(db: Database, saleId: string, presenceSeconds: number): Promise<PresentPlaces> {
  return read(db, saleId, presenceSeconds, NO_OUTAGE);
}

/**
 * As `readPresent`, for the head. Removes the mark if for a whole period no head has told how the queue stands, or if Postgres' clock was
 * set by a period: then perhaps nobody could be heard of. One statement, so that bits and silence are judged at the same instant.
 * @param presenceSeconds at least 1
 */
export function judgePresent(db: Database, saleId: string, presenceSeconds: number): Promise<PresentPlaces> {
  return read(db, saleId, presenceSeconds, outageOf(saleId, presenceSeconds));
}

/**
 * Removes the mark as `judgePresent` does. A head calls it before it reports without having judged: after its report, the next round would
 * see no outage. @param presenceSeconds at least 1
 */
export async function forgiveOutage(db: Database, saleId: string, presenceSeconds: number): Promise<void> {
  const { sql, bindings } = outageOf(saleId, presenceSeconds);
  await db.raw(sql, [...bindings]);
}

function outageOf(saleId: string, presenceSeconds: number): Outage {
  const silence = Math.max(presenceSeconds, MIN_OUTAGE_S);
  return {
    sql: `DELETE FROM queue_presence WHERE sale_id = ? AND period = ${MARK} AND EXISTS (SELECT 1 FROM queues q
      WHERE q.sale_id = ? AND ${isSilent('?')})
      RETURNING 1`,
    bindings: [saleId, saleId, silence, silence],
  };
}

/** Returns a row if there was an outage. */
interface Outage {
  readonly sql: string;
  readonly bindings: readonly (string | number)[];
}

const NO_OUTAGE: Outage = { sql: 'SELECT 1 WHERE false', bindings: [] };

async function read(
  db: Database,
  saleId: string,
  presenceSeconds: number,
  outage: Outage,
): Promise<PresentPlaces> {
  const found = await rows<{ page: string; present: string | null; is_complete: boolean }>(
    db,
    `WITH outage AS (${outage.sql})
     SELECT page::text, bit_or(present) FILTER (WHERE ${COUNTS})::text AS present,
       bool_or(period = ${MARK} AND ${isOldMark('?')}) AND NOT EXISTS (SELECT 1 FROM outage) AS is_complete
     FROM queue_presence WHERE sale_id = ? GROUP BY page`,
    [...outage.bindings, presenceSeconds, presenceSeconds, presenceSeconds, saleId],
  );
  const pages = new Map<number, string>();
  for (const { page, present } of found) if (present !== null) pages.set(Number(page), present);
  return new PresentPlaces(pages, !found.some((row) => row.is_complete));
}

/**
 * Writes the mark if it is missing, and deletes the bits that do not count. Does nothing if the sale has another `presenceSeconds`
 * by now: judged by the old value, no bit of the new periods would count.
 * @param presenceSeconds at least 1
 */
export async function tidyPresence(db: Database, saleId: string, presenceSeconds: number): Promise<void> {
  await db.raw(
    `WITH known AS (SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM sales WHERE id = ? AND presence_seconds <> ?)),
       gone AS (DELETE FROM queue_presence WHERE sale_id = ? AND period >= 0 AND NOT ${COUNTS}
         AND EXISTS (SELECT 1 FROM known))
     INSERT INTO queue_presence (sale_id, period, page, present) SELECT ?, ${MARK}, 0, B'0'::bit(${PAGE_PLACES}) FROM known
     ON CONFLICT DO NOTHING`,
    [saleId, presenceSeconds, saleId, presenceSeconds, presenceSeconds, saleId],
  );
}

const pageOf = (number: number) => Math.floor((number - 1) / PAGE_PLACES);
const bitOf = (number: number) => (number - 1) % PAGE_PLACES;

function pagesOf(numbers: Iterable<number>): Map<number, string> {
  const bits = new Map<number, Uint8Array>();
  for (const number of numbers) {
    const page = pageOf(number);
    const of = bits.get(page) ?? new Uint8Array(PAGE_PLACES).fill(ZERO);
    of[bitOf(number)] = ONE;
    bits.set(page, of);
  }
  return new Map([...bits].map(([page, of]) => [page, Buffer.from(of).toString('latin1')]));
}

const [ZERO, ONE] = ['0'.charCodeAt(0), '1'.charCodeAt(0)];
