/**
 * Which queues the head serves in a round. A shop may have thousands of queues, and in most of them nothing can happen: nobody waits, or no
 * unit is free. So one statement finds the few that need the head now:
 *
 * | queue | the head serves it |
 * |---|---|
 * | urgent: somebody waits and a unit may be free; or the order of a draw is not known; or the last round left work behind | in each round |
 * | due: somebody asks for a place or has left one, nothing was reported yet, an earlier head has left work behind, there may have been an outage, or presence is untidy (presence.ts) | once a second, the oldest reports first |
 * | quiet: any other | never |
 *
 * One statement for all quiet queues says every few seconds that there is a head.
 *
 * A unit can be free for a place only if `sales.stock` has it: Postgres counts a unit as sold later than Redis takes it, and as free before
 * Redis gets it back.
 */
import { type Database, rows } from '../../postgres/database.ts';
import { decodeSale, type RawSale, type SaleRow } from '../../sales/sale-rows.ts';
import { IS_ASKED, IS_OUTAGE, IS_UNTIDY, isSilent } from '../presence.ts';

/** A sale whose queue the head serves. */
export interface QueuedSale extends SaleRow {
  /** Its window has opened, and not ended. */
  readonly hasOpened: boolean;
  /** The head is to report how the queue stands. */
  readonly isDue: boolean;
}

/** How old the report of a queue gets for which somebody asks. */
const REPORT_S = 1;
/** How old that of a quiet queue gets. With a short `presenceSeconds` it is renewed sooner, so that nobody sees an outage. */
const QUIET_REPORT_S = 5;
/** Reports in one round, apart from those of urgent queues. If there are more, the next round follows at once. */
const MAX_REPORTS = 64;

const IS_QUEUED =
  "s.queue <> 'off' AND s.state <> 'closed' AND s.deleting_since IS NULL AND s.generation > 0";
const HAS_OPENED = '(s.starts_at <= now() AND (s.ends_at IS NULL OR s.ends_at > now()))';
const HAS_BEGUN_OFFERS = 'EXISTS (SELECT 1 FROM begun_offers b WHERE b.sale_id = s.id)';
/** Bindings: `urgency`. */
const IS_URGENT = `(s.id = ANY (?::text[]) OR ${HAS_OPENED} AND (
  s.queue = 'draw' AND q.drawn_at IS NULL
  OR q.drawn_at IS NOT NULL AND q.last_number > q.head AND NOT s.id = ANY (?::text[])
  OR s.state = 'open' AND s.stock > 0 AND q.last_number > q.head
    AND (NOT q.is_stopped OR q.allowed > 0 OR ${HAS_BEGUN_OFFERS})))`;
const isOlder = (seconds: string) => `(q.told_at IS NULL OR ${isSilent(seconds)})`;
const QUIET_S = `CASE s.presence_seconds WHEN 0 THEN ${QUIET_REPORT_S} ELSE least(${QUIET_REPORT_S}, greatest(${REPORT_S}, s.presence_seconds / 2.0)) END`;
/** Whether a queue that is not urgent is due for a report when the last one is old. Up to the reach, absent places may have to be ended. */
const IS_TO_REPORT = `(q.told_at IS NULL OR ${IS_OUTAGE} OR ${IS_ASKED} OR ${IS_UNTIDY}
  OR ${HAS_OPENED} AND (q.reach > q.head OR ${HAS_BEGUN_OFFERS}))`;

/** What this head knows, and Postgres does not. */
export interface HeadMemory {
  /** Sales in which the last round has left work behind. */
  readonly unfinished: readonly string[];
  /** Sales whose drawn order is in memory. Until it is, no unit can be offered. */
  readonly drawn: readonly string[];
  /** Sales that are not to be reported now, because they are being served, or failed a moment ago. */
  readonly resting: readonly string[];
}

const urgency = ({ unfinished, drawn }: HeadMemory) => [[...unfinished], [...drawn]];

export interface Work {
  /** All urgent ones first. */
  readonly sales: readonly QueuedSale[];
  /** More are due than one round reports. */
  readonly isMore: boolean;
}

export async function readWork(db: Database, memory: HeadMemory): Promise<Work> {
  const found = await rows<RawSale & { has_opened: boolean; is_due: boolean; is_urgent: boolean }>(
    db,
    `SELECT s.*, ${HAS_OPENED} AS has_opened, w.* FROM sales s JOIN queues q ON q.sale_id = s.id
       CROSS JOIN LATERAL (SELECT ${IS_URGENT} AS is_urgent, ${isOlder(String(REPORT_S))} AS is_due) AS w
     WHERE ${IS_QUEUED} AND (w.is_urgent OR w.is_due AND NOT s.id = ANY (?::text[]) AND ${IS_TO_REPORT})
     ORDER BY w.is_urgent DESC, q.told_at NULLS FIRST`,
    [...urgency(memory), [...memory.resting]],
  );
  const most = found.filter(({ is_urgent }) => is_urgent).length + MAX_REPORTS;
  return {
    sales: found
      .slice(0, most)
      .map((row) => ({ ...decodeSale(row), hasOpened: row.has_opened, isDue: row.is_due })),
    isMore: found.length > most,
  };
}

export interface Known {
  /** Whether the shop has any queue that a head must serve. */
  readonly hasQueues: boolean;
  /** Those of the sales asked for that have such a queue. */
  readonly queued: ReadonlySet<string>;
}

/** @param sales of which the caller wants to know whether they have a queue */
export async function readKnown(db: Database, sales: readonly string[]): Promise<Known> {
  const [found] = await rows<{ has_queues: boolean; queued: string[] }>(
    db,
    `SELECT (SELECT s.id FROM sales s WHERE ${IS_QUEUED} ORDER BY s.id LIMIT 1) IS NOT NULL AS has_queues,
       ARRAY(SELECT s.id FROM sales s WHERE s.id = ANY (?::text[]) AND ${IS_QUEUED}) AS queued`,
    [[...sales]],
  );
  return { hasQueues: found!.has_queues, queued: new Set(found!.queued) };
}

/**
 * Writes for all quiet queues that there is a head, and how many units are free by `sales.stock`. What the last report said about hopeless
 * places stays where nobody can be absent and no unit is free: only a unit that comes back, or a place that leaves, could give them hope, and
 * then the queue is not quiet. Elsewhere it is taken back. Rows that somebody has locked are left out.
 */
export async function tellQuiet(db: Database, memory: HeadMemory): Promise<void> {
  await db.raw(
    `WITH quiet AS (
       SELECT q.sale_id, CASE WHEN s.starts_at > now() THEN NULL WHEN ${HAS_OPENED} THEN s.stock ELSE q.free_units END AS free,
         s.presence_seconds = 0 AND s.stock = 0 AND s.state = 'open' AND ${HAS_OPENED} AS stays_hopeless
       FROM sales s JOIN queues q ON q.sale_id = s.id
       WHERE ${IS_QUEUED} AND ${isOlder(`(${QUIET_S})`)} AND NOT ${IS_URGENT} AND NOT ${IS_TO_REPORT}
       FOR UPDATE OF q SKIP LOCKED
     )
     UPDATE queues q SET told_at = now(), hopeless_from = CASE WHEN quiet.stays_hopeless THEN q.hopeless_from END, free_units = quiet.free
     FROM quiet WHERE q.sale_id = quiet.sale_id`,
    urgency(memory),
  );
}
