/**
 * Which sales the head serves in a round. A shop may have thousands of sales with a queue. In most of them nothing can happen: nobody
 * waits, or no unit is free. So one statement finds the few that need the head now:
 *
 * | sale | is served |
 * |---|---|
 * | urgent: somebody waits and a unit may be free; or its places must be drawn; or the last round left work behind | in each round |
 * | somebody asks for a place, begun offers are not settled, nothing was reported yet, or there may have been an outage (presence.ts) | once a second, the oldest reports first |
 * | quiet: all others | never. One statement for all of them says now and then that there is a head |
 *
 * A unit is free for a place only if `sales.stock` has it: Postgres counts a unit as sold later than Redis takes it, and as free before
 * Redis gets it back.
 */
import { type Database, rows } from '../../postgres/database.ts';
import { decodeSale, type RawSale, type SaleRow } from '../../sales/sale-rows.ts';
import { IS_HEARD_OF, IS_OUTAGE } from '../presence.ts';

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
/** Reports in one round, apart from those of urgent sales: free units must not wait for them for long. */
const MAX_REPORTS = 64;

const IS_QUEUED =
  "s.queue <> 'off' AND s.state <> 'closed' AND s.deleting_since IS NULL AND s.generation > 0";
const HAS_OPENED = 's.starts_at <= now() AND (s.ends_at IS NULL OR s.ends_at > now())';
const HAS_BEGUN_OFFERS = 'EXISTS (SELECT 1 FROM begun_offers b WHERE b.sale_id = s.id)';
/** Binding: sales in which work is left. */
const IS_URGENT = `(s.id = ANY (?::text[])
  OR ${HAS_OPENED} AND s.queue = 'draw' AND q.drawn_at IS NULL
  OR ${HAS_OPENED} AND s.state = 'open' AND s.stock > 0 AND q.last_number > q.head
    AND (NOT q.is_stopped OR q.allowed > 0 OR ${HAS_BEGUN_OFFERS}))`;
const isOlder = (seconds: string) =>
  `(q.told_at IS NULL OR q.told_at NOT BETWEEN now() - ${seconds} * interval '1 second' AND now() + ${seconds} * interval '1 second')`;
const QUIET_S = `CASE s.presence_seconds WHEN 0 THEN ${QUIET_REPORT_S} ELSE least(${QUIET_REPORT_S}, greatest(${REPORT_S}, s.presence_seconds / 2.0)) END`;
/** Whether a queue that is not urgent needs a whole report. That also settles offers that were begun. */
const IS_TO_REPORT = `(q.told_at IS NULL OR ${IS_OUTAGE} OR ${IS_HEARD_OF} OR ${HAS_OPENED} AND ${HAS_BEGUN_OFFERS})`;

/**
 * The sales to serve in this round: all urgent ones first, then some that are due for a report, the oldest reports first.
 * @param unfinished sales in which the last round has left work behind
 */
export async function readWork(db: Database, unfinished: readonly string[]): Promise<QueuedSale[]> {
  const found = await rows<RawSale & { has_opened: boolean; is_due: boolean; is_urgent: boolean }>(
    db,
    `SELECT s.*, ${HAS_OPENED} AS has_opened, w.* FROM sales s JOIN queues q ON q.sale_id = s.id
       CROSS JOIN LATERAL (SELECT ${IS_URGENT} AS is_urgent, ${isOlder(String(REPORT_S))} AS is_due) AS w
     WHERE ${IS_QUEUED} AND (w.is_urgent OR w.is_due AND ${IS_TO_REPORT})
     ORDER BY w.is_urgent DESC, q.told_at NULLS FIRST`,
    [[...unfinished]],
  );
  const urgent = found.filter(({ is_urgent }) => is_urgent).length;
  return found
    .slice(0, urgent + MAX_REPORTS)
    .map((row) => ({ ...decodeSale(row), hasOpened: row.has_opened, isDue: row.is_due }));
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
 * Writes for all quiet queues that there is a head. What the last report said about hopeless ranks may be old, and nobody asks for it: it is
 * taken back. Rows that somebody has locked are left out.
 */
export async function tellQuiet(db: Database): Promise<void> {
  await db.raw(
    `WITH quiet AS (
       SELECT q.sale_id, CASE WHEN s.starts_at > now() THEN NULL WHEN ${HAS_OPENED} THEN s.stock ELSE q.free_units END AS free
       FROM sales s JOIN queues q ON q.sale_id = s.id
       WHERE ${IS_QUEUED} AND ${isOlder(`(${QUIET_S})`)} AND NOT ${IS_URGENT} AND NOT ${IS_TO_REPORT}
       FOR UPDATE OF q SKIP LOCKED
     )
     UPDATE queues q SET told_at = now(), hopeless_from = NULL, free_units = quiet.free FROM quiet WHERE q.sale_id = quiet.sale_id`,
    [[]],
  );
}
