/** Whose turn it is: shares free units among the places at the head of a queue. Pure, so that each rule can be tested alone. */
import type { QueueSettings } from '../../engine/contract.ts';
import type { Place } from '../place.ts';

export interface Free {
  readonly units: number;
  /** Offers that may be begun now, however many units there are. */
  readonly offers: number;
}

const NONE: ReadonlySet<number> = new Set();

export interface Turn {
  /** Places that get an offer now, with the units that are offered, in the order of the queue. */
  readonly offers: readonly { readonly place: Place; readonly quantity: number }[];
  /** What is free afterwards, if all offers are made. */
  readonly left: Free;
  /** The last place whose turn has come. */
  readonly last: Place | undefined;
  /** Whether further places may have their turn at once. If not, units or offers are used up, or the line has stopped. */
  readonly goesOn: boolean;
}

/**
 * @param waiting the next places that wait and whose buyers are present, in the order of the queue
 * @param begun numbers of places whose offers were begun by an earlier round: those do not count again
 */
export function nextTurn(
  waiting: readonly Place[],
  free: Free,
  fit: QueueSettings['fit'],
  begun: ReadonlySet<number> = NONE,
): Turn {
  const offers: { place: Place; quantity: number }[] = [];
  let last: Place | undefined;
  let { units, offers: left } = free;
  let goesOn = true;
  for (const place of waiting) {
    const isBegun = begun.has(place.number);
    goesOn = units > 0 && (isBegun || left > 0);
    if (!goesOn) break;
    last = place;
    if (place.quantity <= units || fit === 'less') {
      const quantity = Math.min(place.quantity, units);
      offers.push({ place, quantity });
      units -= quantity;
      if (!isBegun) left--;
    } else if (fit === 'wait') {
      goesOn = false;
      break;
    }
  }
  return { offers, last, left: { units, offers: left }, goesOn: goesOn && units > 0 && left > 0 };
}
