/**
 * The queues of all sales, as buyers see them through one worker: it gives places, tells how they stand, and ends them.
 *
 *   join ──> place-lanes.ts, in batches ──┐
 *   look ──with a place token─────────────┼──> queue-watch.ts: may its turn have come? ──no──> told from memory
 *        └─without: Postgres, by buyer────┘                                           └─yes─> place-reads.ts, in batches
 *   leave ──> Postgres
 */
import type { TokenPlace } from '../../admission/place-token.ts';
import type { SaleRecord } from '../../engine/contract.ts';
import { Busy, StockadeError } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Database } from '../../postgres/database.ts';
import { type LimitReached, limitReachedBy } from '../held-units.ts';
import type { Place, PlaceWish } from '../place.ts';
import { givePlaces, type Leaving, leaveQueue, readPlaceOf, readPlaces } from '../places.ts';
import { markAbsent } from '../presence.ts';
import { type Given, PlaceLanes } from './place-lanes.ts';
import { PlaceReads } from './place-reads.ts';
import { type ToldPlace, toldClosed, toldEnd } from './place-view.ts';
import { MAX_AGE_MS, QueueWatch, type WatchedQueue } from './queue-watch.ts';

/** Each costs one or two short reads a second. */
const MAX_WATCHED = 200;

export interface BuyersQueueParts {
  readonly db: Database;
  /** Bounds how many single buyers' places are read and left at a time. @throws Busy */
  readonly guarded: <T>(work: () => Promise<T>) => Promise<T>;
  /** Gives units back (orders/returns.ts). If it fails, sync does it. */
  readonly applyReturn: (orderId: string) => Promise<void>;
  /** How long a place that is to be told may wait for Postgres, in milliseconds. */
  readonly deadlineMs: number;
  /** Called with errors that no caller gets. */
  readonly fault: (error: unknown) => void;
}

interface Watched {
  readonly watch: QueueWatch;
  readonly reads: PlaceReads;
}

export class BuyersQueue {
  readonly #parts: BuyersQueueParts;
  readonly #lanes: PlaceLanes;
  readonly #watched = new Map<string, Watched>();
  #isStopped = false;

  constructor(parts: BuyersQueueParts) {
    this.#parts = parts;
    const { db, deadlineMs, fault } = parts;
    this.#lanes = new PlaceLanes({
      give: (saleId, wishes) => give(db, saleId, wishes),
      deadlineMs,
      fault,
    });
  }

  /**
   * The buyer's place, which it gets now if it has none.
   * @param record of a sale that has a queue
   * @param latestMs until when the buyer waits, by `monotonicMs`
   * @returns `undefined` if the queue is full, or was turned off or closed a moment ago
   * @throws Busy; StockadeError if there is no answer until then
   */
  async join(
    record: SaleRecord,
    wish: PlaceWish,
    latestMs: number,
  ): Promise<ToldPlace | LimitReached | undefined> {
    const given = await this.#lanes.ask(record.sale.id, wish, latestMs - monotonicMs());
    if (given) return 'code' in given ? given : this.#tell(record, given, latestMs);
    // Perhaps it is full of places that have left, which the head has not passed yet.
    this.#noteAsked(record);
    return undefined;
  }

  /**
   * As `look`, if the answer is in memory: for most requests of those who wait. It costs no promise.
   * @returns `undefined` if it must be looked up
   */
  lookInMemory(record: SaleRecord, known: TokenPlace): ToldPlace | undefined {
    if (!isServed(record)) return undefined;
    const watched = this.#watched.get(record.sale.id);
    if (!watched?.watch.isReady) return undefined;
    const { watch } = this.#watch(record);
    watch.heard(known.number);
    return watch.mustRead(known.number) ? undefined : watch.tell(known);
  }

  /**
   * The buyer's place now; the newest one, if it has several that have ended.
   * @param known what its place token says
   * @returns `undefined` if it has none
   * @throws Busy, the database's error, or StockadeError if Postgres was not read lately
   */
  async look(
    record: SaleRecord,
    buyerId: string,
    known: TokenPlace | undefined,
  ): Promise<ToldPlace | undefined> {
    const { db, guarded } = this.#parts;
    const { id } = record.sale;
    if (known && isServed(record)) {
      const { watch, reads } = this.#watch(record);
      watch.heard(known.number);
      await watch.ready();
      if (!watch.mustRead(known.number)) return watch.tell(known);
      const place = await reads.read(known.number);
      if (place?.buyerId === buyerId) return this.#tell(record, place);
    }
    const place = await guarded(() => readPlaceOf(db, id, buyerId));
    return place && this.#tell(record, place);
  }

  /**
   * The buyer gives up its place, and its offer if it has one.
   * @returns the place that it leaves, or has left before; without a number as `look`
   * @throws Busy if nothing was done, also because the place is being changed again and again; or as `leaveQueue`
   */
  async leave(record: SaleRecord, buyerId: string, leaving: Leaving = {}): Promise<ToldPlace | undefined> {
    const { db, guarded, applyReturn, fault } = this.#parts;
    const { id, queue } = record.sale;
    const left = await guarded(() => leaveQueue(db, id, buyerId, leaving));
    if (!left) return this.#lookAtEnd(record, buyerId, leaving.number);
    // After some attempts Postgres gives up, and returns the place as it is, or nulls.
    if (left.place.state !== 'left') throw new Busy('the place is being changed: try again later');
    this.#watched.get(id)?.watch.gone(left.place.number);
    this.#noteAsked(record);
    try {
      if (left.returned !== undefined) await applyReturn(left.returned);
      if (queue && queue.presenceSeconds > 0) await markAbsent(db, id, left.place.number);
    } catch (error) {
      // The place has ended. Sync gives the units back, and the mark is of no use after two periods.
      fault(error);
    }
    return this.#tell(record, left.place);
  }

  async #lookAtEnd(
    record: SaleRecord,
    buyerId: string,
    number: number | undefined,
  ): Promise<ToldPlace | undefined> {
    const { db, guarded } = this.#parts;
    const [named] = number === undefined ? [] : await guarded(() => readPlaces(db, record.sale.id, [number]));
    return named?.buyerId === buyerId ? this.#tell(record, named) : this.look(record, buyerId, undefined);
  }

  /** The queues that somebody asks for, without those that could not be read lately. */
  watched(): WatchedQueue[] {
    return [...this.#watched.values()].flatMap(({ watch }) => watch.watched ?? []);
  }

  /** Calls under way may end later: they fail then. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#watched.values()].map(({ watch }) => watch.stop()));
  }

  /** @param latestMs until when it may wait for Postgres */
  async #tell(
    record: SaleRecord,
    place: Place,
    latestMs = monotonicMs() + this.#parts.deadlineMs,
  ): Promise<ToldPlace> {
    if (place.state !== 'waiting') return toldEnd(place);
    if (isOver(record, place)) return toldClosed(place);
    const { watch } = this.#watch(record);
    if (!watch.isReady) await withTimeout(latestMs - monotonicMs(), watch.ready());
    watch.heard(place.number);
    return { ...watch.tell(place), salt: watch.saltOf(place) };
  }

  /** Makes the head look at the queue, although nobody is told of a place. */
  #noteAsked(record: SaleRecord): void {
    const isKnown = this.#watched.has(record.sale.id);
    if (isServed(record) && !this.#isStopped && (isKnown || this.#watched.size < MAX_WATCHED))
      this.#watch(record).watch.asked();
  }

  #watch(record: SaleRecord): Watched {
    const { sale } = record;
    const known = this.#watched.get(sale.id);
    if (known) {
      known.watch.record = record;
      return known;
    }
    if (this.#isStopped) throw new StockadeError('closed', 'the queues were stopped');
    if (this.#watched.size >= MAX_WATCHED)
      throw new Busy(`this worker serves the queues of ${MAX_WATCHED} sales already: try again later`);
    const { db, deadlineMs, fault } = this.#parts;
    const watch = new QueueWatch({
      ...{ db, record, fault },
      forgotten: () => {
        this.#watched.delete(sale.id);
        void watch.stop();
      },
    });
    // A buyer does not wait longer, and what is older is not told.
    const reads = new PlaceReads(db, sale.id, Math.min(deadlineMs, MAX_AGE_MS));
    const watched = { watch, reads };
    this.#watched.set(sale.id, watched);
    return watched;
  }
}

/** Why a buyer got no place is asked afterwards, for those few. */
async function give(
  db: Database,
  saleId: string,
  wishes: readonly PlaceWish[],
): Promise<ReadonlyMap<string, Given>> {
  const places = await givePlaces(db, saleId, wishes);
  const without = wishes.filter(({ buyerId }) => !places.has(buyerId));
  if (without.length === 0) return places;
  return new Map<string, Given>([...places, ...(await limitReachedBy(db, saleId, without))]);
}

/**
 * Whether a place that waits gets no offer any more. A queue is turned off, and a sale closed, in Postgres first, and from then on no offer
 * is committed. The end of the window is read from the clock that decides about offers, because this one may be ahead of it.
 */
function isOver({ sale, state }: SaleRecord, place: Place): boolean {
  return sale.queue === undefined || state === 'closed' || place.isOver === true;
}

/** Whether those who wait may still get an offer, by this node's clock. */
function isServed({ sale, state }: SaleRecord): boolean {
  return (
    sale.queue !== undefined && state !== 'closed' && (sale.endsAt === undefined || Date.now() < sale.endsAt)
  );
}
