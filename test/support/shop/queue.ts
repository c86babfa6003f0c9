/** Queues for tests. */
import { expect } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { BuyersQueue } from '../../../src/queue/buyers/buyers-queue.ts';
import type { Place, PlaceState } from '../../../src/queue/place.ts';
import { givePlaces } from '../../../src/queue/places.ts';
import { markAsked } from '../../../src/queue/presence.ts';
import { until } from '../fixtures.ts';
import type { Shop } from './shop.ts';

/** A queue in which nobody is ever absent. */
export const QUEUE = { queue: 'fifo', presenceSeconds: 0, offerSeconds: 600 } as const;

/** Gives one place after the other, and their buyers ask for them. @returns the numbers */
export async function queued(
  shop: Shop,
  saleId: string,
  buyerIds: readonly string[],
  quantity = 1,
): Promise<number[]> {
  const given = await givePlaces(
    shop.db,
    saleId,
    buyerIds.map((buyerId) => ({ buyerId, quantity })),
  );
  expect(given.size).toBe(buyerIds.length);
  await markAsked(shop.db, saleId);
  return buyerIds.map((buyerId) => given.get(buyerId)!.number);
}

/** As if the bits of those who are present had been complete for a long time. */
export async function completeForLong({ db }: Pick<Shop, 'db'>, saleId: string): Promise<void> {
  const ages = "UPDATE queue_presence SET since = now() - interval '1 day' WHERE sale_id = ? AND period = -1";
  await rows(db, ages, [saleId]);
}

/** The queue as a node serves it to buyers. The caller stops it. */
export function buyersQueueOf({ db }: Pick<Shop, 'db'>): BuyersQueue {
  return new BuyersQueue({
    ...{ db, deadlineMs: 5_000 },
    guarded: (work) => work(),
    applyReturn: async () => {},
    fault: () => {},
  });
}

/** Each buyer's newest state, in the order of the places. */
export async function states(shop: Shop, saleId: string): Promise<Record<string, PlaceState>> {
  const found = await rows<{ buyer_id: string; state: PlaceState }>(
    shop.db,
    'SELECT buyer_id, state FROM places WHERE sale_id = ? ORDER BY number',
    [saleId],
  );
  return Object.fromEntries(found.map(({ buyer_id, state }) => [buyer_id, state]));
}

export async function placesOf(
  shop: Shop,
  saleId: string,
): Promise<Pick<Place, 'number' | 'buyerId' | 'orderId'>[]> {
  const found = await rows<{ number: string; buyer_id: string; order_id: string | null }>(
    shop.db,
    'SELECT p.number::text, buyer_id, order_id::text FROM places p WHERE sale_id = ? ORDER BY p.number',
    [saleId],
  );
  return found.map((row) => ({
    number: Number(row.number),
    buyerId: row.buyer_id,
    orderId: row.order_id ?? undefined,
  }));
}

/** The order that is offered to the buyer, when it is. */
export async function offered(shop: Shop, saleId: string, buyerId: string): Promise<string> {
  return (await until(
    async () => (await placesOf(shop, saleId)).findLast((place) => place.buyerId === buyerId)?.orderId,
    { what: `${buyerId} has an offer` },
  ))!;
}

/** Waits until the newest places of these buyers have these states. */
export async function untilStates(
  shop: Shop,
  saleId: string,
  wanted: Record<string, PlaceState>,
): Promise<void> {
  await until(
    async () => {
      const found = await states(shop, saleId);
      return Object.entries(wanted).every(([buyerId, state]) => found[buyerId] === state);
    },
    { what: `the places are ${JSON.stringify(wanted)}` },
  );
}
