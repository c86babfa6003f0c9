/**
 * The operators' work on the queue of a sale. QueueService does it on the stores, OpsClient (cli/command/ops-client.ts) through a
 * node's ops port.
 */
import { z } from 'zod';
import type { QueueSettings } from '../../engine/contract.ts';
import { InvalidInput, StockadeError } from '../../engine/errors.ts';
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../../engine/limits.ts';
import { type Author, reason } from '../../engine/sale/author.ts';
import { whole } from '../../engine/sale/json-values.ts';
import { urlQuery } from '../../lib/url-query.ts';
import { checkedInput } from '../checked-input.ts';

/**
 * - `off`: the sale has no queue now
 * - `closed`: the sale is closed; `ended`: its window has ended
 * - `before`: its window has not opened, so nobody gets an offer yet
 * - `no-head`: no head has reported for HEAD_SILENCE_S seconds, although one should
 * - `paused`: the sale is; `stopped`: an operator has stopped the offers
 * - `offering`: free units go to the next places
 */
export type QueuePhase =
  | 'off'
  | 'closed'
  | 'before'
  | 'ended'
  | 'no-head'
  | 'paused'
  | 'stopped'
  | 'offering';

/** A head that has not reported for this time counts as missing; it reports how each queue stands once a second. */
export const HEAD_SILENCE_S = 10;
/** In a queue of at most this many places, the places are counted at each look. In a longer one, counting takes too long for a look. */
export const COUNTED_PLACES = 20_000;
/** Offers of the last minute are counted up to this number. */
export const COUNTED_OFFERS = 100_000;

export const PLACE_STATES = ['waiting', 'offered', 'bought', 'lapsed', 'left'] as const;
export type PlaceStateName = (typeof PLACE_STATES)[number];

export interface QueueStatus {
  readonly saleId: string;
  readonly order: 'off' | 'fifo' | 'draw';
  /** How long an offer can be accepted, in seconds. Missing, like the other settings: the queue is off. */
  readonly offerSeconds?: number | undefined;
  /** A buyer not heard of for this many seconds is absent; 0: never. */
  readonly presenceSeconds?: number | undefined;
  /** Places behind the head at most. */
  readonly maxWaiting?: number | undefined;
  /** What becomes of the next place if it wants more units than are free. */
  readonly fit?: QueueSettings['fit'] | undefined;
  readonly phase: QueuePhase;
  /** Places given so far: the number of the newest. */
  readonly places: number;
  /** No place of a rank up to this one waits. */
  readonly head: number;
  /** Places of higher ranks: no more than these wait. */
  readonly behindHead: number;
  /** Places by state. Missing: there are more than COUNTED_PLACES, and nobody asked to count them. */
  readonly counts?: Readonly<Record<PlaceStateName, number>> | undefined;
  /** Units that nobody has. Missing: the head has not told yet. */
  readonly freeUnits?: number | undefined;
  /**
   * The next place, while units lie free because it wants more than these (`fit: wait`). Missing: the free units go to the next
   * places, or no offers are made for another reason.
   */
  readonly waitsForUnits?: { readonly number: number; readonly quantity: number } | undefined;
  /** The first hopeless rank: the present places before it could take all units that are free or offered. Missing: none, or nobody asks. */
  readonly hopelessFrom?: number | undefined;
  /** Offers that were made so far. */
  readonly offersMade: number;
  /** Offers of the last 60 seconds, up to COUNTED_OFFERS. */
  readonly offersLastMinute: number;
  /** An operator has stopped the offers. */
  readonly stopped: boolean;
  /** Offers that may still be made while they are stopped. */
  readonly allowed: number;
  /** Offers in a minute at most. Missing: as many as there are units. */
  readonly perMinute?: number | undefined;
  /** When the head reported last, ISO 8601. Missing: never. */
  readonly toldAt?: string | undefined;
  readonly draw: {
    /** SHA-256 of the seed, known from the beginning. */
    readonly commitment: string;
    /** When the places were drawn, ISO 8601. Missing: they were not. */
    readonly drawnAt?: string | undefined;
    /** Places that took part. */
    readonly entries?: number | undefined;
    readonly entriesHash?: string | undefined;
  };
}

export interface PlaceStatus {
  readonly number: number;
  readonly buyerId: string;
  readonly quantity: number;
  readonly state: PlaceStateName;
  /** Why it has left. */
  readonly reason?: 'asked' | 'absent' | 'limit' | undefined;
  /** The order that is or was its offer. */
  readonly orderId?: string | undefined;
  /** ISO 8601. */
  readonly givenAt: string;
  /** When it was bought, lapsed or left, ISO 8601. */
  readonly endedAt?: string | undefined;
  /** Until when its offer can be accepted, ISO 8601. */
  readonly offeredUntil?: string | undefined;
  /**
   * Waiting places before it, whether their buyers are present or not. Only of a place that waits, in a query for one buyer, and
   * not before its rank is drawn.
   */
  readonly ahead?: number | undefined;
}

export const DEFAULT_PAGE_PLACES = 100;
export const MAX_PAGE_PLACES = 1_000;

export interface PlaceQuery {
  /** Missing: every state. */
  readonly state?: PlaceStateName | undefined;
  /** The page begins after this number. With `buyer`, it begins with the next smaller one. */
  readonly after?: number | undefined;
  /** 1 to MAX_PAGE_PLACES. Default: DEFAULT_PAGE_PLACES, with `buyer` MAX_PAGE_PLACES. */
  readonly limit?: number | undefined;
  /** The places of this buyer, the newest first, instead of those of all buyers. */
  readonly buyer?: string | undefined;
}

export interface PlacePage {
  /** In the order of numbers; those of one buyer in the reverse order. There may be fewer than `limit`, or none, and still a next page. */
  readonly places: readonly PlaceStatus[];
  /** `after` of the next page. Missing: there is none. */
  readonly next?: number | undefined;
}

export type QueueChange =
  /** Makes no more offers, also none that were handed out. Offers that were made stay. */
  | { readonly action: 'pause' }
  /** Offers go on. */
  | { readonly action: 'resume' }
  /** Offers in a minute at most; `null`: as many as there are units. */
  | { readonly action: 'pace'; readonly perMinute: number | null }
  /** This number of further offers may be made while offers are stopped. It replaces what is left of an earlier number. */
  | { readonly action: 'hand-out'; readonly offers: number };

export interface QueueOperations {
  /**
   * @param count count the places by state, however many there are: 0.3 s for a million. @throws UnknownSale, WrongQueueState if
   * the sale never had a queue
   */
  showQueue(saleId: string, options?: { readonly count?: boolean }): Promise<QueueStatus>;
  /** @throws as `showQueue` */
  places(saleId: string, query?: PlaceQuery): Promise<PlacePage>;
  /** A round of offers that is under way goes on to its end. @throws UnknownSale, SaleArchived, WrongState, WrongQueueState */
  changeQueue(saleId: string, change: QueueChange, author: Author): Promise<QueueStatus>;
  /**
   * The file of the draw (queue/draw/draw-file.ts), in pieces of its text. @throws UnknownSale, WrongQueueState if nothing was
   * drawn. The pieces throw the stores' errors
   */
  drawFile(saleId: string): Promise<AsyncIterable<string>>;
}

/** The queue of the sale is not in a state that allows it. Nothing was changed. */
export class WrongQueueState extends StockadeError {
  constructor(message: string) {
    super('wrong_state', message);
  }
}

const MAX_PER_MINUTE = 10_000_000;
const MAX_HANDED_OUT = 10_000_000;

const change = z.discriminatedUnion(
  'action',
  [
    z.strictObject({ action: z.enum(['pause', 'resume']), reason }),
    z.strictObject({
      action: z.literal('pace'),
      perMinute: whole(1, MAX_PER_MINUTE, 'offers in a minute, or null').nullable(),
      reason,
    }),
    z.strictObject({
      action: z.literal('hand-out'),
      offers: whole(0, MAX_HANDED_OUT, 'a number of offers'),
      reason,
    }),
  ],
  { error: 'must be one of pause, resume, pace, hand-out' },
);

/** @throws InvalidInput with all faults at once */
export function parseQueueChange(input: unknown): { change: QueueChange; reason: string } {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw new InvalidInput('the change is not valid', [
      { field: 'the change', problem: 'must be an object' },
    ]);
  const { reason: why, ...parsed } = checkedInput(change, input, {
    invalid: 'the change is not valid',
    whole: 'the change',
    unknown: 'is not a part of this change',
  });
  return { change: parsed, reason: why };
}

const WHOLE = /^\d{1,15}$/;
const natural = (least: number, most: number) => {
  const error = `must be a whole number from ${least} to ${most}`;
  return z
    .string(error)
    .regex(WHOLE, error)
    .transform(Number)
    .refine((value) => value >= least && value <= most, { error });
};

const placeQuery = z
  .strictObject({
    state: z
      .enum(PLACE_STATES, {
        error: ({ input }) =>
          `must be one of ${PLACE_STATES.join(', ')}${input === 'hopeless' ? '. Places that are told hopeless wait: the queue tells from which rank on' : ''}`,
      })
      .optional(),
    after: natural(0, Number.MAX_SAFE_INTEGER).optional(),
    limit: natural(1, MAX_PAGE_PLACES).optional(),
    buyer: z
      .string()
      .regex(ID_PATTERN, {
        error: `must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces`,
      })
      .optional(),
  })
  .refine(({ buyer, state }) => buyer === undefined || state === undefined, {
    path: ['buyer'],
    error: 'can’t be given with `state`: it lists all places of one buyer',
  });

const countQuery = z.strictObject({
  count: z.enum(['true', 'false'], { error: 'must be true or false' }).default('false'),
});

const WORDS = {
  invalid: 'the query is not valid',
  whole: 'the query',
  unknown: 'is not known here',
  isFlat: true,
};

/** @param input names with texts; an undefined value is missing. @throws InvalidInput with all faults at once */
export function parsePlaceQuery(input: object): PlaceQuery {
  return checkedInput(placeQuery, input, WORDS);
}

/** As `parsePlaceQuery`, of a look at the queue. */
export function parseQueueQuery(input: object): { count: boolean } {
  return { count: checkedInput(countQuery, input, WORDS).count === 'true' };
}

/** The query in the form of a URL: with its question mark, or `''` if it is empty. */
export function placeQueryText({ state, after, limit, buyer }: PlaceQuery): string {
  return urlQuery({ state, after, limit, buyer });
}
