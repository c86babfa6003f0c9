/** A place as its buyer is told of it. */

import type { Place, PlaceState } from '../place.ts';
import type { Estimate } from './offer-rate.ts';

export type ToldState =
  | PlaceState
  /** It waits, and the present buyers before it could take all units that are free or offered. A return may still bring its turn. */
  | 'hopeless'
  /** It waits for nothing: the sale is over, or has no queue any more. */
  | 'closed';

export interface ToldPlace {
  readonly number: number;
  readonly quantity: number;
  readonly state: ToldState;
  readonly reason: Place['reason'];
  /** Its turn, from 1 on. `undefined`: it does not wait, or the draw has not been. */
  readonly rank?: number | undefined;
  /** How many take part in the draw so far; only before the draw. */
  readonly entries?: number | undefined;
  /**
   * Proves that the entry in the draw is this buyer's (draw/entry-digest.ts), as 32 hexadecimal characters. Only while it waits, and only
   * if it was read: an answer from memory must stay cheap.
   */
  readonly salt?: string | undefined;
  /** Buyers ahead who are present; only while it waits. */
  readonly ahead?: number | undefined;
  /** Only while it waits, and if enough is known. */
  readonly estimate?: Estimate | undefined;
  readonly offer?:
    | { readonly orderId: string; readonly quantity: number; readonly until: Date | undefined }
    | undefined;
}

/** A place of which nothing but this is known: it waits. */
export type WaitingPlace = Pick<Place, 'number' | 'quantity'>;

/** A place that does not wait. */
export function toldEnd({
  number,
  quantity,
  state,
  reason,
  orderId,
  offeredUnits,
  offeredUntil,
}: Place): ToldPlace {
  const offer =
    state === 'offered' && orderId !== undefined && offeredUnits !== undefined
      ? { orderId, quantity: offeredUnits, until: offeredUntil }
      : undefined;
  return { number, quantity, state, reason, offer };
}

/** A place that waited when its sale was closed, or lost its queue. */
export function toldClosed({ number, quantity }: WaitingPlace): ToldPlace {
  return { number, quantity, state: 'closed', reason: undefined };
}
