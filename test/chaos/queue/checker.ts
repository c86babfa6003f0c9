/**
 * Compares what the people of a queue were told with what Postgres has in the end. Each rule, and why it is no stricter:
 *
 *   Q1  An order whose acceptance was answered 201 is live, or its buyer has cancelled it. An answer "too late" never comes before the
 *       time that the offer showed. A place lapses no earlier than that time.
 *   Q2  When a place gets its offer, every present person before it who waits gets one too: within OFFER_SLACK_MS, because places of
 *       one round are committed in several transactions, and one whose take fails is taken again in the next round.
 *   Q3  No unit lies free for longer than FREE_BOUND_MS while somebody present waits. The promise is one second. The bound is
 *       longer, because Postgres' own commits take hundreds of milliseconds on a machine that runs all processes and all people.
 *       The longest time is reported.
 *   Q6  The places of a buyer never overlap in time. A place that was told is in Postgres, and is its buyer's. A place that has ended, or
 *       has an offer, is never told to wait again.
 *
 * Faults and the recovery after them excuse Q2 and Q3 only, and only until the recovery is over.
 *
 * A person counts as surely present if it was heard of within `presenceSeconds`, less HEARD_SLACK_MS at both ends: a node writes once a
 * second of whom it has heard. What a node heard just before a fault may die with it, so that does not count.
 */
import { FINAL, type Memory } from './memory.ts';
import type { OrderRow, PlaceRow, QueueTruth } from './truth.ts';

/** Time in which a node writes of whom it has heard, on a slow machine. */
const HEARD_SLACK_MS = 2_000;
export const OFFER_SLACK_MS = 3_000;
export const FREE_BOUND_MS = 4_000;
const STEP_MS = 250;

/** From the beginning of a strike until its processes must have recovered. */
export interface FaultTime {
  readonly fromMs: number;
  /** When everything was restored. */
  readonly overMs: number;
  /** `overMs` and the time for the recovery. */
  readonly recoveredMs: number;
}

export interface JudgedQueue {
  readonly stock: number;
  readonly presenceMs: number;
  readonly faults: readonly FaultTime[];
  /** When the sale was closed: later, nobody waits for a unit. */
  readonly closedMs: number;
}

export interface QueueVerdict {
  readonly sold: number;
  /** Units above the stock, at the worst moment. */
  readonly oversold: number;
  /** Orders that were accepted with 201, and are not live although nobody cancelled them. */
  readonly lostAccepted: number;
  /** Acceptances that were refused as too late before the time of their offer was over. */
  readonly refusedInTime: number;
  /** Places that lapsed before the time of their offer was over. */
  readonly lapsedEarly: number;
  /** Present people that waited while a later place got an offer and theirs did not. */
  readonly overtaken: number;
  /** Places that left as absent although their buyers were surely present, or without having been asked to. */
  readonly wronglyLeft: number;
  /** Times that a unit lay free for too long while somebody present waited. */
  readonly idle: number;
  /** The longest such time outside of faults, in milliseconds. */
  readonly longestFreeMs: number;
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
  readonly countedLost: number;
}

export function judgeQueue(people: readonly Memory[], truth: QueueTruth, queue: JudgedQueue): QueueVerdict {
  const places = new Map(truth.places.map((place) => [place.number, place]));
  const orders = new Map(truth.orders.map((order) => [order.orderId, order]));
  const byBuyer = new Map(people.map((memory) => [memory.buyerId, memory]));
  const waits = waitsOf(truth, byBuyer, queue);
  const free = freeTimes(truth, queue, waits);
  const live = truth.orders.filter(({ isLive }) => isLive);
  const sum = (count: (memory: Memory) => number) => people.reduce((all, one) => all + count(one), 0);
  return {
    sold: live.reduce((units, { quantity }) => units + quantity, 0),
    oversold: Math.max(0, mostHeld(truth.orders) - queue.stock),
    lostAccepted: sum((memory) => lostAccepted(memory, orders)),
    refusedInTime: sum(refusedInTime),
    lapsedEarly: sum((memory) => lapsedEarly(memory, places)),
    overtaken: overtaken(waits, queue.faults),
    wronglyLeft: truth.places.filter((place) => isWronglyLeft(place, byBuyer.get(place.buyerId), queue))
      .length,
    idle: free.filter((ms) => ms > FREE_BOUND_MS).length,
    longestFreeMs: Math.max(0, ...free),
    lostPlaces: sum((memory) => lostPlaces(memory, places)),
    doubled: doubled(truth.places),
    tookBack: sum(tookBack),
    withoutEnd: people.filter((memory) => !isToldItsEnd(memory, places)).length,
    invented:
      truth.places.filter(({ buyerId }) => !byBuyer.has(buyerId)).length +
      live.filter(({ number, buyerId }) => places.get(number)?.buyerId !== buyerId).length,
    countedLost: truth.countedLost,
  };
}

/** The most units that orders held at any moment. Units that come back at the moment at which others are taken come back first. */
function mostHeld(orders: readonly OrderRow[]): number {
  let held = 0;
  let most = 0;
  for (const [, units] of changesOf(orders)) {
    held += units;
    most = Math.max(most, held);
  }
  return most;
}

/** By time: units that are taken, and units that come back as negative numbers. */
function changesOf(orders: readonly OrderRow[]): [number, number][] {
  const changes = orders
    .filter(({ isRejected }) => !isRejected)
    .flatMap(({ committedAtMs, endedAtMs, quantity }): [number, number][] => [
      [committedAtMs, quantity],
      ...(endedAtMs === undefined ? [] : [[endedAtMs, -quantity] as [number, number]]),
    ]);
  return changes.sort(([a, x], [b, y]) => a - b || x - y);
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

/** Whether it was heard of so lately that every node and head must count it as present. */
function isPresent({ heardAtMs }: Memory, atMs: number, { presenceMs, faults }: JudgedQueue): boolean {
  return heardAtMs.some(
    (ms) =>
      ms >= atMs - presenceMs + HEARD_SLACK_MS &&
      ms <= atMs - HEARD_SLACK_MS &&
      !faults.some(({ fromMs, overMs }) => ms >= fromMs - HEARD_SLACK_MS && ms <= overMs),
  );
}

/** A place, from when it was given until it got its offer or ended. */
interface Wait {
  readonly number: number;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly isOffered: boolean;
  isPresent(atMs: number): boolean;
}

function waitsOf(
  { places, orders }: QueueTruth,
  people: ReadonlyMap<string, Memory>,
  queue: JudgedQueue,
): Wait[] {
  const offeredAtMs = new Map<number, number>();
  for (const { number, committedAtMs, isRejected } of orders)
    if (!isRejected)
      offeredAtMs.set(number, Math.min(committedAtMs, offeredAtMs.get(number) ?? committedAtMs));
  return places.map(({ number, buyerId, givenAtMs, endedAtMs }) => {
    const memory = people.get(buyerId);
    const offered = offeredAtMs.get(number);
    return {
      number,
      fromMs: givenAtMs,
      untilMs: offered ?? endedAtMs ?? queue.closedMs,
      isOffered: offered !== undefined,
      isPresent: (atMs) => memory !== undefined && isPresent(memory, atMs, queue),
    };
  });
}

/** The end of the fault that this time is in, and its recovery; otherwise the time itself. */
function excusedUntil(atMs: number, faults: readonly FaultTime[]): number {
  const within = faults.filter(({ fromMs, recoveredMs }) => atMs >= fromMs && atMs <= recoveredMs);
  return Math.max(atMs, ...within.map(({ recoveredMs }) => recoveredMs));
}

function overtaken(waits: readonly Wait[], faults: readonly FaultTime[]): number {
  const offered = waits.filter(({ isOffered }) => isOffered);
  return waits.filter((one) =>
    offered.some(({ number, untilMs: offeredMs }) => {
      // The place must have been given before the round that made the later offer began.
      if (number <= one.number || offeredMs < one.fromMs + OFFER_SLACK_MS) return false;
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
  if (reason === 'absent') return endedAtMs !== undefined && isPresent(memory, endedAtMs, queue);
  // Each person asks for one unit, and has no other order.
  return true;
}

/**
 * How long units lay free while somebody surely present waited, outside of faults and recoveries: a number for each unit that was free.
 * An offer is taken to use the unit that has been free for longest. So a unit is never said to have been free for longer than one was.
 */
function freeTimes({ orders }: QueueTruth, queue: JudgedQueue, waits: readonly Wait[]): number[] {
  const changes = changesOf(orders);
  const beginMs = changes[0]?.[0] ?? queue.closedMs;
  const waited = waitedSteps(beginMs, queue, waits);
  const freeSince: number[] = Array.from({ length: queue.stock }, () => beginMs);
  const times: number[] = [];
  const used = (untilMs: number) => {
    const sinceMs = freeSince.shift();
    if (sinceMs === undefined) return;
    const step = (ms: number) => Math.round((ms - beginMs) / STEP_MS);
    times.push(longestRun(waited.slice(step(sinceMs), step(untilMs))) * STEP_MS);
  };
  for (const [atMs, units] of changes) {
    for (let unit = 0; unit < units; unit++) used(atMs);
    for (let unit = 0; unit < -units; unit++) freeSince.push(atMs);
  }
  while (freeSince.length > 0) used(queue.closedMs);
  return times;
}

/** For each step of time whether somebody surely present waited, and no fault excused it. */
function waitedSteps(beginMs: number, queue: JudgedQueue, waits: readonly Wait[]): boolean[] {
  const steps: boolean[] = [];
  for (let atMs = beginMs; atMs < queue.closedMs; atMs += STEP_MS) {
    const isExcused = excusedUntil(atMs, queue.faults) > atMs;
    steps.push(
      !isExcused && waits.some((wait) => wait.fromMs < atMs && wait.untilMs > atMs && wait.isPresent(atMs)),
    );
  }
  return steps;
}

function longestRun(steps: readonly boolean[]): number {
  let longest = 0;
  let run = 0;
  for (const step of steps) {
    run = step ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return longest;
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
