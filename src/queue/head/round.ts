/**
 * One round of the head on one sale: it offers the free units to the places whose turn it is.
 *
 *   free units ──shared among the next places (turn.ts)──> purchases in their names ──committed──> offered
 *                                                     └──at the limit──> left
 *
 * Only the head takes units of a sale with a queue, and it offers no more than are free. So all places of a round get their offers,
 * unless units are withdrawn meanwhile. A purchase without an answer is repeated in the next round, by its key. It was begun
 * (begun-offers.ts), so the repetition does not use up another offer that an operator allows.
 *
 * Those who are absent are skipped in memory, however many they are, and ended afterwards (absentees.ts).
 *
 * Crash points: docs/internals/queue.md.
 */
import type { Outcome, Purchase, QueueSettings } from '../../engine/contract.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Database } from '../../postgres/database.ts';
import type { Line } from '../line.ts';
import { offerTo } from '../offers.ts';
import type { Place } from '../place.ts';
import { passOverLimited, readPlaces } from '../places.ts';
import type { PresentPlaces } from '../presence.ts';
import { presentRanks } from '../present-ranks.ts';
import { NEAR_RANKS, type ReadQueue } from '../queue-state.ts';
import type { HeadEvents } from './head-events.ts';
import { type Free, nextTurn, type Turn } from './turn.ts';
import { Turns } from './turns.ts';

/**
 * How long a round waits for the commits of its offers. A commit that takes longer goes on: a later round finds it, or repeats the
 * take. Otherwise one slow sale would hold up the others.
 */
const COMMIT_WAIT_MS = 1_000;
/** Places that are read together. */
const PAGE = 256;

export interface RoundParts {
  readonly db: Database;
  readonly buy: (purchase: Purchase) => Promise<Outcome>;
  readonly events: HeadEvents;
  /** Uses up offers that an operator allows (begun-offers.ts). @returns false if it allows no more, or the round is out of date */
  readonly begin: (places: readonly number[]) => Promise<boolean>;
}

export interface RoundOf {
  readonly saleId: string;
  readonly queue: ReadQueue;
  readonly line: Line;
  readonly fit: QueueSettings['fit'];
  readonly present: PresentPlaces;
  readonly free: Free;
  /** No place of a rank up to this one waits. */
  readonly head: number;
  /** As in `QueueState`. */
  readonly reach: number;
  /** Numbers of places whose offers were begun, and may not be made yet. The round changes it. */
  readonly begun: Set<number>;
  /** The last number that was given, which is also the last rank. */
  readonly last: number;
}

export interface Done {
  /** Begun in this round: made, or without an answer. */
  readonly offers: number;
  readonly units: number;
}

export interface RoundEnd extends Done {
  readonly turns: Turns;
}

/** @returns the offers that were begun. @throws the database's error */
export async function offerUnits(parts: RoundParts, round: RoundOf): Promise<RoundEnd> {
  const { saleId, fit, begun } = round;
  let { free } = round;
  let made: Done = { offers: 0, units: 0 };
  let after = round.head;
  const turns = new Turns();
  for (let goesOn = free.units > 0 && (free.offers > 0 || begun.size > 0); goesOn; ) {
    const { waiting, upTo } = await nextWaiting(parts.db, round, after, free.units);
    const turn = nextTurn(waiting, free, fit, begun);
    if (!(await parts.begin(turn.offers.map(({ place }) => place.number)))) break;
    await noteReach(parts.db, round, turn.offers.at(-1)?.place);
    const page = await makeOffers(parts, round, turn.offers);
    if (page.limited > 0) parts.events.passedOver({ saleId, absent: 0, limited: page.limited });
    made = { offers: made.offers + page.offers, units: made.units + page.units };
    noteTurns(turns, round, turn, { free, upTo });
    free = turn.left;
    goesOn = turn.goesOn && upTo < round.last && page.delayed === 0;
    after = upTo;
  }
  if (made.offers > 0) parts.events.offered({ saleId, ...made });
  return { ...made, turns };
}

function noteTurns(
  turns: Turns,
  { line, fit }: RoundOf,
  { offers, last, left, goesOn }: Turn,
  { free, upTo }: { readonly free: Free; readonly upTo: number },
): void {
  if (fit !== 'pass') {
    if (goesOn) turns.come(upTo + 1);
    else if (last) turns.come(line.rankOf(last.number));
    return;
  }
  let { units } = free;
  for (const { place, quantity } of offers) {
    turns.come(line.rankOf(place.number), units);
    units -= quantity;
  }
  if (goesOn) turns.come(upTo + 1, left.units);
}

/**
 * The next places that wait, and whose buyers are present: those of some ranks up to `upTo`. With `fit: pass` some that want more than
 * the free units may be missing.
 */
async function nextWaiting(
  db: Database,
  { saleId, line, fit, present, last }: RoundOf,
  after: number,
  freeUnits: number,
): Promise<{ waiting: readonly Place[]; upTo: number }> {
  if (present.isEverybody) {
    const waiting = await line.waiting(db, after, PAGE, fit === 'pass' ? freeUnits : undefined);
    const end = waiting.at(-1);
    return { waiting, upTo: end && waiting.length === PAGE ? line.rankOf(end.number) : last };
  }
  const ranks = await presentRanks(line, present, { after, last }, PAGE);
  const numbers = ranks.map((rank) => line.numberAt(rank));
  const places = new Map((await readPlaces(db, saleId, numbers)).map((place) => [place.number, place]));
  const waiting = numbers.flatMap((number) => {
    const place = places.get(number);
    return place?.state === 'waiting' ? [place] : [];
  });
  return { waiting, upTo: ranks.length === PAGE ? ranks.at(-1)! : last };
}

/** Nodes read no places far behind the head. So before a place there gets an offer, the reach is raised to its rank. */
async function noteReach(
  db: Database,
  { saleId, line, head, reach }: RoundOf,
  furthest: Place | undefined,
): Promise<void> {
  const rank = furthest ? line.rankOf(furthest.number) : 0;
  if (rank <= Math.max(head + NEAR_RANKS, reach)) return;
  await db.raw('UPDATE queues SET reach = greatest(reach, ?) WHERE sale_id = ?', [rank, saleId]);
}

interface Page extends Done {
  readonly limited: number;
  readonly delayed: number;
}

async function makeOffers(
  { db, buy, events }: RoundParts,
  { saleId, queue, begun }: RoundOf,
  offers: readonly { readonly place: Place; readonly quantity: number }[],
): Promise<Page> {
  const outcomes = await Promise.all(
    offers.map(({ place, quantity }) => soon(buy(offerTo(place, quantity)))),
  );
  const limited: { place: Place; quantity: number }[] = [];
  const delayed: Outcome['code'][] = [];
  let [begins, units] = [0, 0];
  for (const [i, outcome] of outcomes.entries()) {
    // A purchase of more units than the limit is invalid, also for the head.
    if (outcome.code === 'limit_reached' || outcome.code === 'invalid_request') {
      limited.push(offers[i]!);
      continue;
    }
    const { number } = offers[i]!.place;
    if (!begun.has(number)) begins++;
    if (outcome.code === 'committed') {
      begun.delete(number);
      units += outcome.quantity;
    } else {
      begun.add(number);
      delayed.push(outcome.code);
    }
  }
  const left = await passOverLimited(db, queue, limited);
  for (const { place } of limited) if (!left.has(place.number)) delayed.push('limit_reached');
  const [outcome] = delayed;
  if (outcome !== undefined) events.delayed({ saleId, places: delayed.length, outcome });
  return { offers: begins, units, limited: left.size, delayed: delayed.length };
}

/** The outcome, or `unknown` if it takes longer than COMMIT_WAIT_MS: the purchase goes on. */
function soon(outcome: Promise<Outcome>): Promise<Outcome> {
  return withTimeout(COMMIT_WAIT_MS, outcome).catch(() => ({ code: 'unknown' }));
}
