import { OFFER_PREFIX } from '../../engine/limits.ts';
import { firstIdAt } from '../../engine/order-id.ts';
import type { Author } from '../../engine/sale/author.ts';
import { queueToJson } from '../../engine/sale/queue-json.ts';
import {
  COUNTED_OFFERS,
  COUNTED_PLACES,
  HEAD_SILENCE_S,
  PLACE_STATES,
  type PlacePage,
  type PlaceQuery,
  type PlaceStateName,
  type PlaceStatus,
  type QueueChange,
  type QueueOperations,
  type QueuePhase,
  type QueueStatus,
  WrongQueueState,
} from '../../operations/queue/queue-operations.ts';
import { type Database, rows } from '../../postgres/database.ts';
import { readKnownSale, type SaleRow } from '../../sales/sale-rows.ts';
import { commitmentOf } from '../draw/seed.ts';
import { type QueueState, readQueue } from '../queue-state.ts';
import { drawFileOf } from './draw-export.ts';
import { NextPlace } from './next-place.ts';
import { controlOffers, noQueue } from './offer-control.ts';
import { readPlacePage, readPlacesOfBuyer } from './place-pages.ts';
import { countAhead } from './places-ahead.ts';

/** The operators' work on queues. It needs Postgres alone: the head does in the backend what is asked for there. */
export class QueueService implements QueueOperations {
  readonly #db: Database;
  readonly #next: NextPlace;

  constructor(db: Database) {
    [this.#db, this.#next] = [db, new NextPlace(db)];
  }

  async showQueue(
    saleId: string,
    { count = false }: { readonly count?: boolean } = {},
  ): Promise<QueueStatus> {
    const { row, state } = await this.#find(saleId);
    const isCounted = count || state.lastNumber <= COUNTED_PLACES;
    const counts = isCounted ? await readCounts(this.#db, saleId) : undefined;
    const status = statusOf(row, state, await readMoment(this.#db, saleId), counts);
    if (status.phase !== 'offering') return status;
    return { ...status, waitsForUnits: await this.#next.waitsForUnits(row, state) };
  }

  async places(saleId: string, { buyer, ...query }: PlaceQuery = {}): Promise<PlacePage> {
    const { row, state } = await this.#find(saleId);
    if (buyer === undefined) return readPlacePage(this.#db, saleId, state.lastNumber, query);
    const found = await readPlacesOfBuyer(this.#db, saleId, buyer, query);
    const isDrawn = row.sale.queue?.order === 'draw';
    const places: PlaceStatus[] = [];
    for (const place of found.places) {
      const ahead =
        place.state === 'waiting' ? await countAhead(this.#db, state, isDrawn, place.number) : undefined;
      places.push({ ...place, ...(ahead !== undefined && { ahead }) });
    }
    return { ...found, places };
  }

  /** @param latestMs as for `transactionInTime` */
  async changeQueue(
    saleId: string,
    change: QueueChange,
    author: Author,
    latestMs?: number,
  ): Promise<QueueStatus> {
    await controlOffers(this.#db, saleId, change, author, latestMs);
    return this.showQueue(saleId);
  }

  async drawFile(saleId: string): Promise<AsyncIterable<string>> {
    const { row, state } = await this.#find(saleId);
    if (!state.draw.drawn) throw notDrawn(row);
    return drawFileOf(this.#db, saleId, state.draw.drawn, state.draw);
  }

  async #find(saleId: string): Promise<{ row: SaleRow; state: QueueState }> {
    const row = await readKnownSale(this.#db, saleId);
    const state = await readQueue(this.#db, saleId);
    if (!state) throw noQueue(saleId, row.state, row.archivedAt !== undefined);
    return { row, state };
  }
}

function notDrawn({ sale }: SaleRow): WrongQueueState {
  if (sale.queue?.order !== 'draw')
    return new WrongQueueState(`sale ${sale.id} has no draw: its queue is ${sale.queue?.order ?? 'off'}`);
  const opens = new Date(sale.startsAt).toISOString();
  return new WrongQueueState(
    `the places of sale ${sale.id} are not drawn yet: that happens when its window opens, at ${opens}`,
  );
}

/** What depends on this instant, by Postgres' clock. */
interface Moment {
  readonly hasBegun: boolean;
  readonly hasEnded: boolean;
  readonly isHeadSilent: boolean;
  readonly offersLastMinute: number;
}

async function readMoment(db: Database, saleId: string): Promise<Moment> {
  const [row] = await rows<{
    has_begun: boolean;
    has_ended: boolean;
    is_silent: boolean;
    offers: string;
  }>(
    db,
    `SELECT s.starts_at <= now() AS has_begun, coalesce(s.ends_at <= now(), false) AS has_ended,
       coalesce(q.told_at < now() - ? * interval '1 second', true) AS is_silent,
       (SELECT count(*) FROM (SELECT 1 FROM orders o
         WHERE (o.sale_id, o.order_id) >= (s.id, ?::bigint) AND (o.sale_id, o.order_id) < (s.id, ?::bigint)
           AND starts_with(o.idempotency_key, ?) LIMIT ${COUNTED_OFFERS}) recent)::text AS offers
     FROM sales s JOIN queues q ON q.sale_id = s.id WHERE s.id = ?`,
    [HEAD_SILENCE_S, firstIdAt(Date.now() - 60_000), MAX_ID, OFFER_PREFIX, saleId],
  );
  return {
    hasBegun: row?.has_begun ?? false,
    hasEnded: row?.has_ended ?? false,
    isHeadSilent: row?.is_silent ?? true,
    offersLastMinute: Number(row?.offers ?? 0),
  };
}

const MAX_ID = String(2n ** 63n - 1n);

async function readCounts(db: Database, saleId: string): Promise<Record<PlaceStateName, number>> {
  const found = await rows<{ state: PlaceStateName; places: string }>(
    db,
    'SELECT state, count(*)::text AS places FROM places WHERE sale_id = ? GROUP BY state',
    [saleId],
  );
  const counts = Object.fromEntries(PLACE_STATES.map((state) => [state, 0]));
  for (const { state, places } of found) counts[state] = Number(places);
  return counts as Record<PlaceStateName, number>;
}

function phaseOf({ sale, state }: SaleRow, { isStopped }: QueueState, moment: Moment): QueuePhase {
  if (!sale.queue) return 'off';
  if (state === 'closed') return 'closed';
  if (!moment.hasBegun) return 'before';
  if (moment.hasEnded) return 'ended';
  if (moment.isHeadSilent) return 'no-head';
  if (state === 'paused') return 'paused';
  return isStopped ? 'stopped' : 'offering';
}

function statusOf(
  row: SaleRow,
  state: QueueState,
  moment: Moment,
  counts: QueueStatus['counts'],
): QueueStatus {
  const { saleId, lastNumber, head, freeUnits, hopelessFrom, offersMade, perMinute, allowed } = state;
  const { seed, drawn } = state.draw;
  const { queue: order = 'off', ...settings } = queueToJson(row.sale.queue);
  return {
    saleId,
    order,
    ...settings,
    phase: phaseOf(row, state, moment),
    places: lastNumber,
    head,
    behindHead: Math.max(0, lastNumber - head),
    counts,
    freeUnits,
    hopelessFrom,
    offersMade,
    offersLastMinute: moment.offersLastMinute,
    stopped: state.isStopped,
    allowed,
    perMinute,
    toldAt: state.toldAt?.toISOString(),
    draw: {
      commitment: commitmentOf(seed),
      ...(drawn && {
        drawnAt: drawn.at.toISOString(),
        entries: drawn.entries,
        entriesHash: drawn.entriesHash,
      }),
    },
  };
}
