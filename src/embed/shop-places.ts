/** The interface of the queues of an embedded shop: places, and the offers that come to them. */
import type { LimitReached } from '../queue/held-units.ts';
import type { LeftReason } from '../queue/place.ts';

export type { LeftReason, LimitReached };

/** Whose place, in the queue of which sale. The shop believes the `buyerId` that it is given. */
export interface PlaceHolder {
  readonly saleId: string;
  /** The buyer's id: 1 to 128 visible ASCII characters. */
  readonly buyerId: string;
}

export interface NewPlace extends PlaceHolder {
  /** Units, 1 to the sale's limit per buyer. A place keeps its first quantity. Default 1. */
  readonly quantity?: number | undefined;
}

/** Units that are set aside for a place. */
export interface Offer {
  readonly orderId: string;
  /** May be less than the place wants, if the sale's `fit` is `less`. */
  readonly quantity: number;
  /** Until when it can be accepted, in milliseconds since the Unix epoch. Absent while its time does not run. */
  readonly until?: number | undefined;
}

export interface BuyersPlace {
  readonly code: 'place';
  /** Counts from 1 in each sale, in the order in which places were given. */
  readonly number: number;
  readonly quantity: number;
  /**
   * `waiting`: its turn has not come. `hopeless`: it waits, and the present buyers before it could take all units that are free
   * or offered. `offered`: units are set aside for it. `bought`: the offer was accepted. `lapsed`: it was not accepted in time.
   * `left`: see `reason`. `closed`: it still waited when the sale ended, or when its queue was turned off.
   */
  readonly state: 'waiting' | 'hopeless' | 'offered' | 'bought' | 'lapsed' | 'left' | 'closed';
  /** Why it has left: `asked`, `absent` when its turn came, or its buyer may not hold more (`limit`). */
  readonly reason?: LeftReason | undefined;
  /** Its turn, from 1 on. Only while it waits, and not before the draw. */
  readonly rank?: number | undefined;
  /** How many take part in the draw so far. Only before the draw. */
  readonly entries?: number | undefined;
  /** Proves which entry in the file of the draw is this buyer's. In the answer to `join`, while it waits for its turn in a draw. */
  readonly salt?: string | undefined;
  /** Buyers ahead who are present. Only while it waits. */
  readonly ahead?: number | undefined;
  /** How long it waits if offers go on as in the last minute, and the standard error of that. Absent while too little is known. */
  readonly estimate?: { readonly seconds: number; readonly errorSeconds: number } | undefined;
  /** Only while it is `offered`. */
  readonly offer?: Offer | undefined;
}

/**
 * A place, or why there is none. `limit_reached`, only from `join`: with this place the buyer could hold more units than the sale allows.
 * After `busy`, `unavailable` and `queue_full` the call may be repeated: a buyer keeps its place.
 * `unknown`, only from `leave`: the place may have been left. Repeat the call: a place that was left stays so. Times are milliseconds
 * since the Unix epoch.
 */
export type PlaceOutcome =
  | BuyersPlace
  | { readonly code: 'no_place' | 'no_queue' | 'queue_full' | 'unknown_sale' | 'busy' | 'unknown' }
  | { readonly code: 'unavailable'; readonly detail?: string }
  | LimitReached
  | { readonly code: 'ended'; readonly endedAt?: number }
  | { readonly code: 'invalid_request'; readonly detail: string };

export interface NewAcceptance {
  /** The buyer to whom the offer was made. */
  readonly buyerId: string;
  /** As it was told with the place. It is believed: never take it from a browser. */
  readonly offer: Pick<Offer, 'orderId' | 'quantity'>;
  /** As in a purchase. */
  readonly reference?: string | undefined;
  /** As in a purchase. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * `committed`: the order is the buyer's, also if it was accepted before. `offer_ended`: its time was over, it was given back, it was
 * accepted before and its order has ended since, or it is not this buyer's. `unknown`: it may have been accepted, so repeat the call.
 * With `busy` and `unavailable` nothing was done.
 */
export type AcceptanceOutcome =
  | { readonly code: 'committed'; readonly orderId: string; readonly quantity: number }
  | { readonly code: 'offer_ended' | 'paused' | 'busy' | 'unknown' }
  | { readonly code: 'unavailable'; readonly detail?: string }
  | { readonly code: 'invalid_request'; readonly detail: string };

/**
 * Queues, as buyers see them. Each method resolves within about `requestDeadlineMs`. For values that a buyer may have sent wrong the
 * outcome is `invalid_request`, after `close` it is `unavailable` with a `detail` that says so.
 */
export interface ShopPlaces {
  /**
   * Gives the buyer a place, or finds the one that it has. The call needs no purchase token, also with `requireToken`.
   * @throws InvalidInput for a member of the wrong type
   */
  join(place: NewPlace): Promise<PlaceOutcome>;
  /**
   * How the place stands. Call it every few seconds for each buyer who waits: a buyer of whom nothing is heard for
   * `presenceSeconds` is passed over when its turn comes.
   * @param last what the last call told of this buyer's place. Then most answers come from memory; without it, each is read from
   * Postgres. It is believed: keep it in your program, and never take it from a browser
   * @throws InvalidInput for a member of the wrong type, and for a `last` that no call has told
   */
  show(holder: PlaceHolder, last?: PlaceOutcome): Promise<PlaceOutcome>;
  /**
   * Leaves the queue, and gives back an offer.
   * @param last names the place that is left: what a call told of it. A place that the buyer has got since stays. Without it, the buyer
   * leaves the place that it has when the call is carried out
   * @throws InvalidInput for a member of the wrong type, and for a `last` that no call has told
   */
  leave(holder: PlaceHolder, last?: PlaceOutcome): Promise<PlaceOutcome>;
  /** Buys what is offered. May be repeated. @throws InvalidInput for a member of the wrong type, or a bad reference or metadata */
  accept(acceptance: NewAcceptance): Promise<AcceptanceOutcome>;
}
