/**
 * Compares what the people of a queue were told with what Postgres has in the end. Each rule, and why it is no stricter:
 *
 *   Q1  An order whose acceptance was answered 201 is live, or its buyer has cancelled it. An answer "too late" never comes before the
 *       time that the offer showed. A place lapses no earlier than that time. During a pause no offer ends and none is accepted: for
 *       PAUSE_SLACK_MS it may, because a change that had begun before the pause may be committed after it. Orders never hold more
 *       units than the stock.
 *   Q2  When a place gets its offer, every present person before it who waits gets one too: within OFFER_SLACK_MS, because places of
 *       one round are committed in several transactions, and one whose take fails is taken again in the next round. The order is that of
 *       the numbers or, after a draw, of the ranks that are calculated again from what the draw has published. A rank that was told
 *       is that rank.
 *   Q3  No unit lies free for longer than FREE_BOUND_MS while somebody present waits (units.ts). The promise is one second. The bound is
 *       longer, because Postgres' own commits take hundreds of milliseconds on a machine that runs all processes and all people.
 *       The longest time is reported.
 *   Q5  Nobody is told `hopeless` while units could still come to its place, nor `waiting` when none could (hopeless.ts). Everybody is
 *       told how their place has ended, as Postgres has it.
 *   Q6  The places of a buyer never overlap in time. A place that was told is in Postgres, and is its buyer's. A place that has ended, or
 *       has an offer, is never told to wait again.
 *
 * Faults and the recovery after them excuse Q2, Q3 and the second half of Q5's first rule only, and only until the recovery is over.
 * Whether somebody was present is judged as in waits.ts.
 */
import { judgeHopes } from './hopeless.ts';
import { FINAL, type Memory } from './memory.ts';
import type { Movement, OrderRow, PlaceRow, QueueTruth } from './truth.ts';
import { freeTimes, greatest, oversoldUnits } from './units.ts';
import {
  excusedUntil,
  type FaultTime,
  isSurelyPresent,
  type JudgedQueue,
  type Wait,
  waitsOf,
} from './waits.ts';

export const OFFER_SLACK_MS = 3_000;
export const FREE_BOUND_MS = 4_000;
export const PAUSE_SLACK_MS = 1_000;

export interface QueueVerdict {
  readonly sold: number;
  /** Units of the stock that nobody has. */
  readonly unsold: number;
  /** Units above the stock, at the worst moment. */
  readonly oversold: number;
  /** Orders that were accepted with 201, and are not live although nobody cancelled them. */
  readonly lostAccepted: number;
  /** Acceptances that were refused as too late before the time of their offer was over. */
  readonly refusedInTime: number;
  /** Places that lapsed before the time of their offer was over. */
  readonly lapsedEarly: number;
  /** Offers that lapsed or were accepted during a pause. */
  readonly endedInPause: number;
  /** Present people that waited while a later place got an offer and theirs did not. */
  readonly overtaken: number;
  /** Places that left as absent although their buyers were surely present, or without having been asked to. */
  readonly wronglyLeft: number;
  /** Times that a unit lay free for too long while somebody present waited. */
  readonly idle: number;
  /** The longest such time outside of faults, in milliseconds. */
  readonly longestFreeMs: number;
  /** The same with the time of the faults. It has no bound but that of the faults themselves. */
  readonly longestFreeInFaultMs: number;
  /** The longest time outside of faults for which some unit or other was free. It has no bound: units come back all the time. */
  readonly longestAnyFreeMs: number;
  /** Answers `hopeless` about places to which a unit could still come. */
  readonly falselyHopeless: number;
  /** Answers `waiting` about places to which no unit could come. */
  readonly falselyHopeful: number;
  /** People who were told another rank than that of their place. */
  readonly wrongRanks: number;
  /** Places that were told and that Postgres does not have, or has for another buyer. */
  readonly lostPlaces: number;
  /** Buyers with two places at a time. */
  readonly doubled: number;
  /** Places that were told to wait, after an end or an offer had been told. */
  readonly tookBack: number;
  /** People who were not told an end, or another one than Postgres has. */
  readonly withoutEnd: number;
  /** Places of buyers who never asked for one, and orders that belong to no place of their buyer. */
  readonly invented: number;
  /** Offers that Redis has lost and that somebody has reported. */
  readonly reportedLost: number;
}

export function judgeQueue(people: readonly Memory[], truth: QueueTruth, queue: JudgedQueue): QueueVerdict {
  const places = new Map(truth.places.map((place) => [place.number, place]));
  const orders = new Map(truth.orders.map((order) => [order.orderId, order]));
  const byBuyer = new Map(people.map((memory) => [memory.buyerId, memory]));
  const waits = waitsOf(truth, byBuyer, queue);
  const free = freeTimes(truth, queue, waits);
  const live = truth.orders.filter(({ isLive }) => isLive);
  const sum = (count: (memory: Memory) => number) => people.reduce((all, one) => all + count(one), 0);
  const sold = live.reduce((units, { quantity }) => units + quantity, 0);
  return {
    sold,
    unsold: truth.movements.reduce((units, movement) => units + movement.units, queue.stock) - sold,
    oversold: oversoldUnits(truth, queue.stock),
    lostAccepted: sum((memory) => lostAccepted(memory, orders)),
    refusedInTime: sum(refusedInTime),
    lapsedEarly: sum((memory) => lapsedEarly(memory, places)),
    endedInPause: endedInPause(truth),
    overtaken: overtaken(waits, queue.faults),
    wronglyLeft: truth.places.filter((place) => isWronglyLeft(place, byBuyer.get(place.buyerId), queue))
      .length,
    idle: free.judged.filter((ms) => ms > FREE_BOUND_MS).length,
    longestFreeMs: greatest(free.judged),
    longestFreeInFaultMs: free.longestMs,
    longestAnyFreeMs: free.longestAnyMs,
    ...judgeHopes(people, truth, queue, waits),
    wrongRanks: people.filter((memory) => isToldAnotherRank(memory, places)).length,
    lostPlaces: sum((memory) => lostPlaces(memory, places)),
    doubled: doubled(truth.places),
    tookBack: sum(tookBack),
    withoutEnd: people.filter((memory) => !isToldItsEnd(memory, places)).length,
    invented:
      truth.places.filter(({ buyerId }) => !byBuyer.has(buyerId)).length +
      live.filter(({ number, buyerId }) => places.get(number)?.buyerId !== buyerId).length,
    reportedLost: truth.reportedLost,
  };
}

function lostAccepted({ acceptances, cancelled }: Memory, orders: ReadonlyMap<string, OrderRow>): number {
  return acceptances.filter(
    ({ outcome, orderId }) =>
      outcome === 'accepted' &&
      !orders.get(orderId)?.isLive &&
      !(cancelled.has(orderId) && orders.has(orderId)),
  ).length;
}

function refusedInTime({ acceptances, offers, askedToLeave }: Memory): number {
  return acceptances.filter(
    ({ outcome, orderId, answeredAtMs }) =>
      outcome === 'too late' && !askedToLeave && answeredAtMs < offers.get(orderId)!.untilMs,
  ).length;
}

function lapsedEarly({ offers }: Memory, places: ReadonlyMap<number, PlaceRow>): number {
  return [...offers.values()].filter(({ number, untilMs }) => {
    const place = places.get(number);
    return place?.state === 'lapsed' && place.endedAtMs !== undefined && place.endedAtMs < untilMs;
  }).length;
}

function endedInPause({ places, movements }: QueueTruth): number {
  const pauses = pausesOf(movements);
  return places.filter(
    ({ state, endedAtMs }) =>
      (state === 'lapsed' || state === 'bought') &&
      pauses.some(([fromMs, untilMs]) => endedAtMs! > fromMs + PAUSE_SLACK_MS && endedAtMs! < untilMs),
  ).length;
}

function pausesOf(movements: readonly Movement[]): [fromMs: number, untilMs: number][] {
  const changes = movements.filter(({ action }) => action === 'pause' || action === 'resume');
  return changes.flatMap(({ action, atMs }, i) =>
    action === 'pause' ? [[atMs, changes[i + 1]?.atMs ?? Number.POSITIVE_INFINITY]] : [],
  );
}

function overtaken(waits: readonly Wait[], faults: readonly FaultTime[]): number {
  const offered = waits.filter(({ isOffered }) => isOffered);
  return waits.filter((one) =>
    offered.some(({ rank, untilMs: offeredMs }) => {
      // The place must have been given before the round that made the later offer began.
      if (rank <= one.rank || offeredMs < one.fromMs + OFFER_SLACK_MS) return false;
      const dueMs = excusedUntil(offeredMs + OFFER_SLACK_MS, faults);
      return one.untilMs > dueMs && one.isPresent(offeredMs) && one.isPresent(dueMs);
    }),
  ).length;
}

function isWronglyLeft(
  { state, reason, endedAtMs }: PlaceRow,
  memory: Memory | undefined,
  queue: JudgedQueue,
): boolean {
  if (state !== 'left' || memory === undefined) return false;
  if (reason === 'asked') return !memory.askedToLeave;
  if (reason === 'absent') return endedAtMs !== undefined && isSurelyPresent(memory, endedAtMs, queue);
  // Each person asks for one unit, and has no other order.
  return true;
}

function isToldAnotherRank({ told }: Memory, places: ReadonlyMap<number, PlaceRow>): boolean {
  return told.some(({ number, rank }) => rank !== undefined && rank !== places.get(number)?.rank);
}

function lostPlaces({ told, buyerId }: Memory, places: ReadonlyMap<number, PlaceRow>): number {
  const numbers = new Set(told.map(({ number }) => number));
  return [...numbers].filter((number) => places.get(number)?.buyerId !== buyerId).length;
}

function doubled(places: readonly PlaceRow[]): number {
  const last = new Map<string, PlaceRow>();
  let found = 0;
  for (const place of places) {
    const before = last.get(place.buyerId);
    if (before && (before.endedAtMs === undefined || before.endedAtMs > place.givenAtMs)) found++;
    last.set(place.buyerId, place);
  }
  return found;
}

function tookBack({ told }: Memory): number {
  const decided = new Map<number, 'offered' | 'ended'>();
  let found = 0;
  for (const { number, state } of told) {
    const before = decided.get(number);
    const waits = state === 'waiting' || state === 'hopeless';
    if ((waits && before) || (state === 'offered' && before === 'ended')) found++;
    if (FINAL.has(state)) decided.set(number, 'ended');
    else if (state === 'offered') decided.set(number, 'offered');
  }
  return found;
}

/** An offer may still have been open when its sale was closed, and a person may have accepted without asking again. */
function isToldItsEnd({ told }: Memory, places: ReadonlyMap<number, PlaceRow>): boolean {
  const last = told.at(-1);
  if (!last) return false;
  const state = places.get(last.number)?.state;
  return FINAL.has(last.state) && (last.state === 'closed' ? state === 'waiting' : state === last.state);
}
