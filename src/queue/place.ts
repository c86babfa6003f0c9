/** A place in the queue of a sale, as it is stored. */

export type PlaceState =
  /** It has its number, and no offer yet. */
  | 'waiting'
  /** Units are held for it. */
  | 'offered'
  /** Its buyer has accepted the offer. */
  | 'bought'
  /** The time of its offer was over. */
  | 'lapsed'
  /** Its buyer has left, was absent when its turn came, or may not hold more units. */
  | 'left';

export type LeftReason = 'asked' | 'absent' | 'limit';

export interface Place {
  readonly saleId: string;
  /** Counts from 1 in each sale, in the order in which places were given. */
  readonly number: number;
  readonly buyerId: string;
  readonly quantity: number;
  readonly state: PlaceState;
  /** Why it has left. */
  readonly reason: LeftReason | undefined;
  /** The order that is or was its offer. */
  readonly orderId: string | undefined;
  /** Until when its offer can be accepted; only while it is offered. */
  readonly offeredUntil: Date | undefined;
  /** Units of its offer, which may be fewer than it wanted; only while it is offered. */
  readonly offeredUnits: number | undefined;
  /** It waits, and its sale has ended some time ago, so that it gets no offer any more. `undefined`: that was not asked. */
  readonly isOver?: boolean | undefined;
}

/** What a buyer asks for. */
export interface PlaceWish {
  readonly buyerId: string;
  readonly quantity: number;
}
