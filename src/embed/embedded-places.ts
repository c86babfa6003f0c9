/** What buyers do in the queues of an embedded shop. A node's routes do the same (http/public/place/), for buyers with tokens. */
import type { SaleRecord } from '../engine/contract.ts';
import { isBusy, StockadeError } from '../engine/errors.ts';
import { SALE_ID_PATTERN } from '../engine/limits.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { settled, withTimeout } from '../lib/with-timeout.ts';
import type { BuyersQueue } from '../queue/buyers/buyers-queue.ts';
import { joinRefusal } from '../queue/buyers/join-refusal.ts';
import type { ToldPlace } from '../queue/buyers/place-view.ts';
import type { Acceptance, Accepted } from '../queue/offers.ts';
import { checkedAcceptance, checkedKnown, checkedPlace, invalidBuyer } from './checked.ts';
import type { AcceptanceOutcome, BuyersPlace, PlaceOutcome, ShopPlaces } from './shop-places.ts';

export interface PlaceParts {
  readonly queue: Pick<BuyersQueue, 'join' | 'look' | 'lookInMemory' | 'leave'>;
  /**
   * @param latestMs when it may take effect at the latest, by `monotonicMs`
   * @returns `undefined` if there is no such order. @throws Busy if nothing was done; or the database's error
   */
  acceptOffer(wish: Acceptance, latestMs: number): Promise<Accepted | undefined>;
  /** @throws Busy, or the error of the backend */
  readRecord(saleId: string): Promise<SaleRecord | undefined>;
  readonly deadlineMs: number;
  readonly fault: (error: unknown) => void;
}

type Run = <T extends object>(
  work: () => Promise<T>,
) => Promise<T | { readonly code: 'unavailable'; readonly detail: string }>;

/** @param run does not begin a work after `close` */
export function placesOf(parts: PlaceParts, run: Run): ShopPlaces {
  const { queue } = parts;
  const inQueue = (
    saleId: string,
    buyerId: string,
    work: (record: SaleRecord, latestMs: number) => Promise<PlaceOutcome>,
    failed: () => 'unavailable' | 'unknown' = () => 'unavailable',
  ): Promise<PlaceOutcome> =>
    run(() =>
      answered(parts, failed, async (latestMs) => {
        const wrong = invalidBuyer(buyerId);
        if (wrong) return wrong;
        const record = SALE_ID_PATTERN.test(saleId) ? await parts.readRecord(saleId) : undefined;
        return record ? work(record, latestMs) : { code: 'unknown_sale' };
      }),
    );
  return {
    async join(input) {
      const { saleId, buyerId, quantity } = checkedPlace(input);
      return inQueue(saleId, buyerId, async (record, latestMs) => {
        const refused = joinRefusal(record, quantity);
        if (refused) return refused;
        const joined = await queue.join(record, { buyerId, quantity }, latestMs);
        if (joined) return 'code' in joined ? joined : told(joined);
        // Perhaps the queue was turned off, or the sale closed, a moment ago.
        const since = (await parts.readRecord(saleId)) ?? record;
        return joinRefusal(since, quantity) ?? { code: 'queue_full' };
      });
    },
    async show(input, last) {
      const { saleId, buyerId } = checkedPlace(input);
      const known = checkedKnown(last);
      return inQueue(saleId, buyerId, async (record) => {
        const place =
          (known && queue.lookInMemory(record, known)) ?? (await queue.look(record, buyerId, known));
        return place ? told(place) : { code: 'no_place' };
      });
    },
    async leave(input, last) {
      const { saleId, buyerId } = checkedPlace(input);
      const number = checkedKnown(last)?.number;
      let isLeaving = false;
      const leaving = async (record: SaleRecord, latestMs: number): Promise<PlaceOutcome> => {
        isLeaving = true;
        const place = await queue.leave(record, buyerId, { number, latestMs });
        return place ? told(place) : { code: 'no_place' };
      };
      return inQueue(saleId, buyerId, leaving, () => (isLeaving ? 'unknown' : 'unavailable'));
    },
    async accept(input) {
      const wish = checkedAcceptance(input);
      return run(() =>
        answered(
          parts,
          () => 'unknown',
          async (latestMs) =>
            invalidBuyer(wish.buyerId) ?? outcomeOf(wish, await parts.acceptOffer(wish, latestMs)),
        ),
      );
    },
  };
}

/**
 * @param failed what it means if a store fails or there is no answer in time
 * @param work called with the latest time at which a change may take effect
 */
async function answered<T extends object, F extends string>(
  { deadlineMs, fault }: PlaceParts,
  failed: () => F,
  work: (latestMs: number) => Promise<T>,
): Promise<T | { readonly code: F | 'busy' }> {
  const latestMs = monotonicMs() + deadlineMs;
  try {
    return await withTimeout(deadlineMs, work(latestMs));
  } catch (error) {
    if (isBusy(error)) return { code: 'busy' };
    if (!(error instanceof StockadeError)) fault(error);
    await settled(error, latestMs);
    return { code: failed() };
  }
}

function told({ offer, ...place }: ToldPlace): BuyersPlace {
  return {
    code: 'place',
    ...place,
    ...(offer && {
      offer: {
        orderId: offer.orderId,
        quantity: offer.quantity,
        ...(offer.until && { until: offer.until.getTime() }),
      },
    }),
  };
}

function outcomeOf({ orderId, quantity }: Acceptance, accepted: Accepted | undefined): AcceptanceOutcome {
  switch (accepted?.verdict) {
    case 'done':
      return { code: 'committed', orderId, quantity };
    case 'paused':
      return { code: 'paused' };
    case 'quantity':
      return { code: 'invalid_request', detail: `quantity must be that of the offer, not ${quantity}` };
    // Whether another buyer has an offer is not for this one to know.
    case 'late':
    case 'forbidden':
    case undefined:
      return { code: 'offer_ended' };
  }
}
