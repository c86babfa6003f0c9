/**
 * Checks the queue of a sale for the auditor (docs/internals/queue.md): after each event, that a place changes its state only in
 * allowed ways and follows its order, that offers end in time and not before, and who is passed over.
 *
 * A place is overtaken if a place behind it has an offer while it waits. The offers of one round are committed in any order, so
 * that is wrong only if the place still waits a while later. While there are faults it may wait for long: its unit is taken in a
 * log that nobody reads, or it was lost. So places are watched for that only in calm weather.
 */
import { OFFER_PREFIX } from '../../../src/engine/limits.ts';
import { time } from '../machines/virtual-time.ts';
import type { World } from '../machines/world.ts';
import type { Truth } from './books.ts';
import { entriesHashOf, ranksOf } from './drawn-ranks.ts';
import { Hopes } from './hopes.ts';

export interface PlaceTruth {
  readonly number: number;
  readonly buyer: string;
  readonly quantity: number;
  readonly state: 'waiting' | 'offered' | 'bought' | 'lapsed' | 'left';
  readonly reason: string | null;
  readonly order: string | null;
}

interface OrderTruth {
  readonly status: string;
  readonly key: string | null;
  readonly units: number;
  readonly buyer: string;
  readonly offerOf: number | null;
  /** In milliseconds, by Postgres' clock. */
  readonly until: number | null;
}

/** The queue as Postgres has it. */
export interface QueueTruth {
  readonly isOn: boolean;
  readonly order: 'off' | 'fifo' | 'draw';
  /** In milliseconds, by Postgres' clock. */
  readonly opensAt: number;
  /** Hexadecimal. */
  readonly seed: string;
  readonly saltKey: string;
  readonly entries: number | null;
  readonly entriesHash: string | null;
  readonly isDrawn: boolean;
  readonly fit: 'wait' | 'less' | 'pass';
  readonly presenceMs: number;
  readonly payMs: number | null;
  readonly maxWaiting: number;
  readonly lastNumber: number;
  readonly head: number;
  readonly hopelessFrom: number | null;
  readonly places: readonly PlaceTruth[];
  readonly orders: Readonly<Record<string, OrderTruth>>;
}

const MS = (at: string) => `(extract(epoch FROM ${at}) * 1000)::float8`;

/** $1: the sale's id. */
export const QUEUE_TRUTH = `SELECT json_build_object('isOn', s.queue <> 'off', 'order', s.queue, 'fit', s.fit,
  'opensAt', ${MS('s.starts_at')}, 'seed', encode(q.seed, 'hex'), 'saltKey', encode(q.salt_key, 'hex'),
  'entries', q.entries, 'entriesHash', q.entries_hash, 'isDrawn', q.drawn_at IS NOT NULL,
  'presenceMs', s.presence_seconds * 1000, 'payMs', s.pay_within_seconds * 1000,
  'maxWaiting', s.max_waiting, 'lastNumber', q.last_number, 'head', q.head, 'hopelessFrom', q.hopeless_from,
  'places', (SELECT coalesce(json_agg(json_build_object('number', number, 'buyer', buyer_id, 'quantity', quantity,
     'state', state, 'reason', reason, 'order', order_id::text) ORDER BY number), '[]') FROM places WHERE sale_id = $1),
  'orders', (SELECT coalesce(json_object_agg(order_id::text, json_build_object('status', status, 'key', idempotency_key,
     'units', quantity, 'buyer', buyer_id, 'offerOf', offer_of, 'until', ${MS('expires_at')})), '{}')
     FROM orders WHERE sale_id = $1))
  FROM sales s JOIN queues q ON q.sale_id = s.id WHERE s.id = $1`;

const NEXT: Readonly<Record<PlaceTruth['state'], readonly PlaceTruth['state'][]>> = {
  waiting: ['offered', 'left', 'bought', 'lapsed'],
  offered: ['bought', 'lapsed', 'left'],
  bought: [],
  lapsed: [],
  left: [],
};

const LIVE = new Set(['unpaid', 'paid', 'redeemed']);
/** Postgres counts in microseconds, and this auditor in milliseconds. */
const ROUNDING_MS = 2;
/** In calm weather, all offers of a round are committed within this time. */
const OVERTAKEN_MS = 2_000;
/** A limit that was used a moment ago may still be so for a head that has asked then. */
const LIMIT_MS = 1_500;
/** From a look at presence until the offer is committed, at most. */
const OFFER_MS = 1_000;
/** When presence begins anew, its mark is written within this time. */
const PRESENCE_BEGINS_MS = 3_000;

export class QueueWatch {
  truth: QueueTruth | undefined;
  /** Whether nobody may be overtaken from now on. */
  isCalm = false;
  /** From a look of the head at presence to what it does then, at most. */
  roundMs = 1_500;
  readonly #world: World;
  readonly #fail: (what: string) => never;
  readonly #everLost: () => boolean;
  readonly #leaving = new Set<string>();
  /** When a buyer's presence was noted: by number, the times before and after. */
  readonly #marks = new Map<number, { since: number; until: number }[]>();
  readonly #given = new Map<number, number>();
  readonly #hopes = new Hopes();
  readonly #overtaken = new Map<number, { at: number; by: number }>();
  /** When each buyer was last seen to hold as many units. */
  readonly #held = new Map<string, Map<number, number>>();
  #latest = 0;
  #wasOff = false;
  #pausedAt = Number.NEGATIVE_INFINITY;
  #state = 'open';
  #presenceSince = 0;
  /** By number, once the places are drawn. */
  #ranks: readonly number[] | undefined;

  constructor(world: World, fail: (what: string) => never, everLost: () => boolean) {
    this.#world = world;
    this.#fail = fail;
    this.#everLost = everLost;
  }

  /** This buyer asks to leave. */
  leaves(buyer: string): void {
    this.#leaving.add(buyer);
  }

  /** The place was marked as present, at some time since `since`. */
  marked(number: number, since: number): void {
    const marks = this.#marks.get(number) ?? [];
    this.#marks.set(number, [...marks.slice(-20), { since, until: time.now }]);
  }

  /** What Postgres knew of presence is lost, or counted anew: everybody counts as present for a while. */
  presenceBegins(): void {
    this.#presenceSince = time.now;
  }

  /** Whether the sale was paused at any time since then. */
  wasPaused(since: number): boolean {
    return this.#state === 'paused' || this.#pausedAt >= since;
  }

  /** The latest time that Postgres' clock has shown. */
  get latest(): number {
    return this.#latest;
  }

  check(saleId: string, sale: Truth): void {
    const before = this.truth;
    const now = this.#world.sql<QueueTruth>(`EXECUTE queue_truth('${saleId}')`);
    if (!now) return;
    this.#latest = Math.max(this.#latest, this.#postgresMs);
    this.truth = now;
    this.#checkDraw(saleId, now, before);
    this.#checkNumbers(now, before);
    const old = new Map(before?.places.map((place) => [place.number, place]));
    for (const place of now.places) this.#checkPlace(place, now);
    for (const place of now.places) {
      const was = old.get(place.number);
      if (!was) this.#given.set(place.number, time.now);
      if (was && was.state !== place.state) this.#checkStep(was, place, now, before!);
    }
    this.#checkOrders(now, sale);
    if (this.isCalm) this.#checkOvertaken(now);
    else this.#overtaken.clear();
    this.#noteHeld(sale);
    this.#checkHopes(sale, now, before);
    if (!now.isOn) this.#wasOff = true;
    if (sale.state === 'paused') this.#pausedAt = time.now;
    this.#state = sale.state;
  }

  get #postgresMs(): number {
    return Date.now() + this.#world.postgres.machine.skewMs;
  }

  /** What comes before a place, and itself. */
  rankOf(number: number): number {
    return this.#ranks?.[number] ?? number;
  }

  /** The places that wait, in the order in which they are served. */
  waiting(): PlaceTruth[] {
    const waiting = this.truth!.places.filter(({ state }) => state === 'waiting');
    return waiting.toSorted((a, b) => this.rankOf(a.number) - this.rankOf(b.number));
  }

  /** All places that were given before are entries, and stay so; whoever knows seed and entries gets the same order. */
  #checkDraw(saleId: string, now: QueueTruth, before: QueueTruth | undefined): void {
    const { entries, entriesHash, isDrawn, seed, saltKey, lastNumber, opensAt } = now;
    const told = `of ${entries} entries with the hash ${entriesHash}`;
    if (before && before.seed !== seed) this.#fail('draw: it has another seed');
    if (before?.entries != null && before.entries !== entries)
      this.#fail(`draw: it was of ${before.entries} entries, and is ${told}`);
    if (before?.entriesHash && before.entriesHash !== entriesHash)
      this.#fail(`draw: the hash was ${before.entriesHash}, and is ${told}`);
    if (entries !== null && before?.entries === null && (entries !== lastNumber || opensAt > this.#latest))
      this.#fail(
        `draw: ${told}, when ${lastNumber} places were given, ${opensAt - this.#latest} ms before the opening`,
      );
    if (!isDrawn || this.#ranks) return;
    const buyers = now.places.slice(0, entries!).map(({ buyer }) => buyer);
    const draw = { saleId, seed, saltKey, buyers };
    if (entriesHash !== entriesHashOf(draw)) this.#fail(`draw: ${told} instead of ${entriesHashOf(draw)}`);
    this.#ranks = ranksOf(draw);
    this.#hopes.drawn();
  }

  /** With presence, those who are absent don't count, and the head does not tell who that is. */
  #checkHopes(sale: Truth, now: QueueTruth, before: QueueTruth | undefined): void {
    if (now.presenceMs > 0) return;
    const wrong = this.#hopes.check(sale, now, before, this.waiting(), (number) => this.rankOf(number));
    if (wrong !== undefined) this.#fail(`Q5: ${wrong}`);
  }

  #checkNumbers({ places, lastNumber, head }: QueueTruth, before: QueueTruth | undefined): void {
    const wrong = places.findIndex(({ number }, i) => number !== i + 1);
    if (wrong >= 0 || places.length !== lastNumber)
      this.#fail(`Q2: the numbers are ${places.map(({ number }) => number)}, the newest is ${lastNumber}`);
    for (const [i, { buyer, quantity, number }] of (before?.places ?? []).entries())
      if (places[i]?.buyer !== buyer || places[i]?.quantity !== quantity)
        this.#fail(`Q4: place ${number} was ${buyer}'s, and is ${JSON.stringify(places[i])}`);
    if (before && lastNumber > before.lastNumber && lastNumber - before.head > before.maxWaiting)
      this.#fail(
        `Q4: place ${lastNumber} was given behind ${before.head}, with ${before.maxWaiting} at most`,
      );
    const live = places.filter(({ state }) => state === 'waiting' || state === 'offered');
    if (new Set(live.map(({ buyer }) => buyer)).size < live.length)
      this.#fail(`Q6: a buyer has two places: ${JSON.stringify(live)}`);
    const passed = places.find(({ number, state }) => this.rankOf(number) <= head && state === 'waiting');
    if (passed) this.#fail(`Q2: the head has passed place ${passed.number}, which waits: it is at ${head}`);
  }

  /** A place follows its order. */
  #checkPlace(place: PlaceTruth, { orders, fit, payMs }: QueueTruth): void {
    const { state, number, buyer, quantity, order: id } = place;
    const order = id === null ? undefined : orders[id];
    const isRight = () => {
      if (state === 'waiting') return id === null;
      if (state === 'left' && id === null) return true;
      if (!order || order.buyer !== buyer) return false;
      if (order.units !== quantity && !(fit === 'less' || this.#wasOff || order.units < quantity))
        return false;
      if (state === 'offered') return order.status === 'unpaid' && order.offerOf === number;
      if (state === 'bought') return order.status !== 'rejected' && order.offerOf === null;
      return order.status === (state === 'lapsed' ? 'expired' : 'cancelled');
    };
    if (!isRight())
      this.#fail(`Q4: ${JSON.stringify(place)} has the order ${JSON.stringify(order)}, ${payMs}`);
  }

  #checkStep(was: PlaceTruth, is: PlaceTruth, now: QueueTruth, before: QueueTruth): void {
    const { number, buyer, order: id } = is;
    if (!NEXT[was.state].includes(is.state))
      this.#fail(`Q4: place ${number} was ${was.state}, and is ${is.state}`);
    const order = id === null ? undefined : now.orders[id];
    const offer = id === null ? undefined : before.orders[id];
    if (is.state === 'bought' && offer) this.#checkAccepted(number, offer, order!, now);
    if (is.state === 'lapsed') {
      if (offer && offer.until! > this.#latest + ROUNDING_MS)
        this.#fail(`Q1: the offer to place ${number} has lapsed ${offer.until! - this.#latest} ms early`);
      if (this.#state === 'paused')
        this.#fail(`Q1: the offer to place ${number} has lapsed while the sale was paused`);
    }
    if (is.state === 'left' && is.reason === 'asked' && !this.#leaving.has(buyer))
      this.#fail(`Q2: place ${number} has left, and ${buyer} did not ask for that`);
    if (is.state === 'left' && is.reason === 'limit') this.#checkLimit(is);
    if (is.state === 'left' && is.reason === 'absent') this.#checkAbsent(is, before);
    if (is.state === 'offered') this.#checkOffered(is, now, before);
  }

  #checkAccepted(number: number, offer: OrderTruth, order: OrderTruth, { payMs }: QueueTruth): void {
    const now = this.#postgresMs;
    if (offer.until! <= now - ROUNDING_MS)
      this.#fail(`Q1: the offer to place ${number} was accepted ${now - offer.until!} ms after its end`);
    const isRight =
      payMs === null ? order.until === null : Math.abs(order.until! - now - payMs) <= ROUNDING_MS;
    if (order.status === 'unpaid' && !isRight)
      this.#fail(`Q1: place ${number} is bought, and its order ends at ${order.until}; now it is ${now}`);
  }

  /** Only who holds units, or has held them a moment ago, is passed over because of the limit. */
  #checkLimit({ number, buyer }: PlaceTruth): void {
    const seen = [...(this.#held.get(buyer) ?? [])].filter(([, at]) => at >= time.now - LIMIT_MS);
    if (!seen.some(([units]) => units > 0))
      this.#fail(`Q2: place ${number} was passed over because of the limit, and ${buyer} holds nothing`);
  }

  #checkAbsent({ number, buyer }: PlaceTruth, { presenceMs }: QueueTruth): void {
    const given = this.#given.get(number)!;
    const mark = [...(this.#marks.get(number) ?? []), { since: given, until: given }].find(
      ({ since, until }) => since >= time.now - presenceMs && until <= time.now - this.roundMs,
    );
    if (mark || presenceMs === 0)
      this.#fail(
        `Q2: ${buyer} was passed over as absent, and was there ${time.now - (mark?.since ?? 0)} ms ago`,
      );
  }

  #checkOffered(
    { number, quantity }: PlaceTruth,
    { places, fit, presenceMs, opensAt, order, isDrawn, isOn }: QueueTruth,
    before: QueueTruth,
  ): void {
    if ((!isOn && !before.isOn) || this.#state === 'closed')
      this.#fail(`Q4: place ${number} gets an offer, and may have been told that it is closed`);
    if (opensAt > this.#latest + ROUNDING_MS)
      this.#fail(`Q2: place ${number} gets an offer ${opensAt - this.#latest} ms before the window opens`);
    if (order === 'draw' && !isDrawn) this.#fail(`Q2: place ${number} gets an offer before the draw`);
    const marks = (this.#marks.get(number) ?? []).map(({ until }) => until);
    const lastMark = Math.max(this.#given.get(number) ?? 0, ...marks);
    const since = Math.max(lastMark + OFFER_MS, this.#presenceSince + PRESENCE_BEGINS_MS);
    if (presenceMs > 0 && time.now > since + 2 * presenceMs)
      this.#fail(`Q2: place ${number} gets an offer, and was absent for ${time.now - lastMark} ms`);
    if (!this.isCalm) return;
    for (const other of places)
      if (
        this.rankOf(other.number) < this.rankOf(number) &&
        other.state === 'waiting' &&
        (fit !== 'pass' || other.quantity <= quantity)
      )
        if (!this.#overtaken.has(other.number))
          this.#overtaken.set(other.number, { at: time.now, by: number });
  }

  #checkOvertaken({ places, isOn }: QueueTruth): void {
    for (const [number, { at, by }] of this.#overtaken) {
      const isWaiting = places[number - 1]?.state === 'waiting' && isOn && this.#state === 'open';
      if (!isWaiting) this.#overtaken.delete(number);
      else if (time.now > at + OVERTAKEN_MS)
        this.#fail(
          `Q2: place ${by} has its offer since ${(time.now - at).toFixed(0)} ms, and place ${number} waits`,
        );
    }
  }

  /** While there is a queue, each order is that of a place. */
  #checkOrders({ places, orders, isOn }: QueueTruth, { state }: Truth): void {
    const wasOver = this.#wasOff || !isOn || state === 'closed';
    const ofPlaces = new Set(places.map(({ order }) => order));
    for (const [id, { status, key, buyer, units }] of Object.entries(orders)) {
      if (status !== 'rejected') {
        if (!ofPlaces.has(id) && !this.#wasOff)
          this.#fail(`Q1: order ${id} of ${buyer} for ${units} units belongs to no place`);
        continue;
      }
      const place = places[placeOfKey(key) - 1];
      const isOver = !place || place.state === 'left' || place.state === 'lapsed' || wasOver;
      if (!isOver && !this.#everLost())
        this.#fail(`Q1: an order for place ${place.number} was refused, and the place is ${place.state}`);
    }
  }

  #noteHeld({ orders }: Truth): void {
    const held = new Map<string, number>();
    for (const { buyer, units, status } of orders)
      if (LIVE.has(status)) held.set(buyer, (held.get(buyer) ?? 0) + units);
    for (const [buyer, units] of held) {
      const seen = this.#held.get(buyer) ?? new Map();
      this.#held.set(buyer, seen.set(units, time.now));
    }
  }
}

/** @returns 0 if the key is not that of an offer */
function placeOfKey(key: string | null): number {
  return key?.startsWith(OFFER_PREFIX) ? Number(key.slice(OFFER_PREFIX.length)) : 0;
}
