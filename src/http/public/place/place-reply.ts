/** A place of a queue as JSON, with the tokens that its buyer sends back. */
import type { OfferTokens } from '../../../admission/offer-token.ts';
import type { PlaceTokens } from '../../../admission/place-token.ts';
import type { ToldPlace } from '../../../queue/buyers/place-view.ts';
import { type CountedReply, headOf } from '../../server/replies/reply.ts';

export interface PlaceSigners {
  readonly places: PlaceTokens;
  readonly offers: OfferTokens;
}

export interface Holder {
  readonly saleId: string;
  readonly buyerId: string;
}

/** Each buyer is told something else, and something else a second later. */
const HEAD = headOf(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });

/** @param placeToken as that of `placeJson` */
export function placeReply(
  signers: PlaceSigners,
  holder: Holder,
  place: ToldPlace,
  placeToken?: string,
): CountedReply {
  const json = placeJson(signers, holder, place, placeToken, place.salt);
  return { status: 200, head: HEAD, body: JSON.stringify(json), outcome: place.state };
}

/**
 * @param placeToken of this place, if the caller has it already
 * @param salt left out of streams: they would tell it only while the place is near the head
 */
export function placeJson(
  { places, offers }: PlaceSigners,
  holder: Holder,
  place: ToldPlace,
  placeToken = places.issue(holder, place),
  salt?: string,
): object {
  const { number, quantity, state, reason, rank, entries, ahead, estimate, offer } = place;
  return {
    saleId: holder.saleId,
    ...{ number, quantity, state, reason, rank, entries, ahead },
    estimateSeconds: estimate?.seconds,
    estimateErrorSeconds: estimate?.errorSeconds,
    placeToken,
    offer: offer && {
      token: offers.issue(holder, offer),
      orderId: offer.orderId,
      quantity: offer.quantity,
      expiresAt: offer.until?.toISOString(),
    },
    salt,
  };
}
