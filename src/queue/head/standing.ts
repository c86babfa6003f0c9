/**
 * How a queue stands, as the head writes it into the row of `queues` for the nodes: its position, the free units, and the first hopeless
 * rank.
 *
 * `hopeless` must be certain, so what is not known counts for the buyers:
 *
 * - Units that may come are counted in Postgres alone: those that no live order has, and those of offers. A unit that is taken for an offer
 *   and not committed is still among them, as its place is still among those that wait. So are units that ended orders gave back, and
 *   that their segments have not got yet.
 * - They are counted before the places: an offer that is made in between is then a unit too many, and not a place too many.
 * - Only those count as buyers ahead who were heard of, also while everybody counts as present (presence.ts). Of places that may have
 *   had an offer, only those that still wait.
 * - A place that wants more units than are free may be passed over (`fit: pass`), and then takes none. There, only places that want one unit
 *   count as ahead. What the places further behind want is not read, so none of them counts.
 */
import { type Database, rows } from '../../postgres/database.ts';
import type { Line } from '../line.ts';
import { waitingAmong } from '../places.ts';
import { EVERYBODY, type PresentPlaces } from '../presence.ts';
import { presentRanks, rankBehindPresent } from '../present-ranks.ts';
import { IS_SAME_QUEUE, NEAR_RANKS, type QueueState, REPORT, sameQueue } from '../queue-state.ts';

export interface Standing {
  readonly line: Line;
  readonly present: PresentPlaces;
  /** Offers made in this round. */
  readonly made: number;
  /** Units that nobody has after this round. */
  readonly free: number;
  /** Whether a place may be passed over because it wants too many units. */
  readonly passes: boolean;
}

/**
 * Writes nothing if the ranks have changed, or if another head has reported since the queue was read. That report is newer: a place that
 * this head found hopeless may have hope again.
 */
export async function writeStanding(
  db: Database,
  state: QueueState,
  { line, present, free, passes }: Standing,
): Promise<void> {
  const { saleId, head, lastNumber, report } = state;
  const coming = await readComing(db, saleId);
  const first = await line.rankBehind(db, head, 0);
  const hopelessFrom =
    first === undefined
      ? undefined
      : await hopelessRank({ db, saleId, line, present, passes, head, first, last: lastNumber }, coming);
  await db.raw(
    `UPDATE queues SET head = ?, hopeless_from = ?, free_units = ?, told_at = now()
     WHERE ${IS_SAME_QUEUE} AND ${REPORT} IS NOT DISTINCT FROM ?`,
    [
      // If nobody waits: up to the number that was the last when the round began. A place that was given since then waits.
      first === undefined ? lastNumber : first - 1,
      ...[hopelessFrom ?? null, free],
      ...[...sameQueue(state), report ?? null],
    ],
  );
}

/**
 * Writes that there is a head. Before the window opens, and while the sale is being rebuilt, it also takes back what an earlier head wrote
 * about hopeless ranks: operators may have added units since. It writes nothing in the same cases as `writeStanding`.
 */
export async function writeAlive(db: Database, state: QueueState, isBeingRebuilt: boolean): Promise<void> {
  await db.raw(
    `UPDATE queues SET told_at = now(), hopeless_from = CASE WHEN w.is_early OR ? THEN NULL ELSE hopeless_from END,
       free_units = CASE WHEN w.is_early THEN NULL ELSE free_units END
     FROM (SELECT starts_at > now() AS is_early FROM sales WHERE id = ?) AS w
     WHERE ${IS_SAME_QUEUE} AND ${REPORT} IS NOT DISTINCT FROM ?`,
    [isBeingRebuilt, state.saleId, ...sameQueue(state), state.report ?? null],
  );
}

interface Coming {
  /** Units that may still come to places that wait. */
  readonly units: number;
  /** As in `QueueState`, after the offers of this round. */
  readonly reach: number;
}

async function readComing(db: Database, saleId: string): Promise<Coming> {
  const [row] = await rows<{ units: string; reach: string }>(
    db,
    `SELECT (s.stock + (SELECT coalesce(sum(o.quantity), 0) FROM places p JOIN orders o ON o.order_id = p.order_id
       WHERE p.sale_id = s.id AND p.state = 'offered'))::text AS units, q.reach::text
     FROM sales s JOIN queues q ON q.sale_id = s.id WHERE s.id = ?`,
    [saleId],
  );
  return { units: Number(row?.units ?? 0), reach: Number(row?.reach ?? 0) };
}

interface Waiting extends Pick<Standing, 'line' | 'present' | 'passes'> {
  readonly db: Database;
  readonly saleId: string;
  /** No place of a rank up to this one waits. */
  readonly head: number;
  /** The first rank that waits. */
  readonly first: number;
  /** The last rank that was given. */
  readonly last: number;
}

/**
 * The first hopeless rank: the places before it that count could take all coming units.
 * `undefined`: none is hopeless.
 */
async function hopelessRank(
  { db, saleId, line, present, passes, head, first, last }: Waiting,
  { units, reach }: Coming,
): Promise<number | undefined> {
  if (units === 0) return first;
  if (units > last - first) return undefined;
  const known = present.heardOf;
  if (!known && !passes) return line.rankBehind(db, first - 1, units);
  // Up to here there may be present places that have had an offer.
  const reached = known ? Math.max(head + NEAR_RANKS, reach) : first - 1 + NEAR_RANKS;
  const near = Math.max(first - 1, Math.min(last, reached));
  const ranks = await presentRanks(
    line,
    known ?? EVERYBODY,
    { after: first - 1, last: near },
    Number.POSITIVE_INFINITY,
  );
  const numbers = ranks.map((rank) => line.numberAt(rank));
  const waiting = await waitingAmong(db, saleId, numbers, passes ? 1 : undefined);
  const ahead = ranks.filter((_, i) => waiting.has(numbers[i]!));
  const lastAhead = ahead[units - 1];
  if (lastAhead !== undefined) return lastAhead < last ? lastAhead + 1 : undefined;
  if (!known || passes) return undefined;
  return rankBehindPresent(line, known, { after: near, last }, units - ahead.length);
}
