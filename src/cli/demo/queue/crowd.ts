/** The crowd of the demo of the queue. Each person does what a buyer's page does: takes a place, listens to it, buys or not. */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { BuyerClient, type Place } from '../../../client/index.ts';
import { type Person, peopleOf, type QueuePlan, shownPerson } from './plan.ts';

/** What somebody was told so far. */
export interface Seen {
  place?: Place;
  /** When its offer was made, by the clock of Postgres: the first one, in milliseconds. */
  offeredAtMs?: number;
  /** The order that it was told of. */
  orderId?: string;
  /** Resolves when it has done with its offer what it wanted. */
  answering?: Promise<void>;
}

export interface Crowd {
  readonly seen: readonly Seen[];
  /** The one whose place is shown. */
  readonly shown: Seen;
  /** Resolves when nobody waits or has an offer. @throws what a person could not deal with, the signal's reason */
  readonly ended: Promise<void>;
}

export interface CrowdSurroundings {
  readonly url: string;
  readonly saleId: string;
  /** What identifies the person with this number. */
  headers(nth: number): Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export function sendQueueCrowd(plan: QueuePlan, surroundings: CrowdSurroundings): Crowd {
  const people = peopleOf(plan);
  // Everybody waits with it.
  setMaxListeners(0, surroundings.signal);
  const seen: Seen[] = people.map(() => ({}));
  const ended = Promise.all(
    people.map((person, nth) => live(person, seen[nth]!, nth, plan, surroundings)),
  ).then(() => {});
  return { seen, shown: seen[shownPerson(people)]!, ended };
}

async function live(
  { comesAtMs, deed, thinksMs }: Person,
  seen: Seen,
  nth: number,
  { offerSeconds }: QueuePlan,
  { url, saleId, headers, signal }: CrowdSurroundings,
): Promise<void> {
  const client = new BuyerClient({ url, headers: () => headers(nth) });
  await delay(comesAtMs, undefined, { signal });
  const taken = await client.takePlace(saleId, {}, { signal });
  if (taken.code !== 'found') throw new Error(`a place was refused: ${taken.code}`);
  seen.place = taken.place;
  for await (const update of client.followPlace(saleId, taken.place.placeToken, { signal })) {
    if (update.code !== 'found') continue;
    seen.place = update.place;
    const { offer } = update.place;
    if (!offer || seen.answering) continue;
    // While the sale is paused, an offer does not end.
    if (offer.expiresAt !== undefined) seen.offeredAtMs = Date.parse(offer.expiresAt) - offerSeconds * 1_000;
    seen.answering = (async () => {
      if (deed === 'lets it lapse') return;
      await delay(thinksMs, undefined, { signal });
      if (deed === 'gives back') {
        await client.leave(saleId, update.place.placeToken, { signal });
        return;
      }
      const { token, quantity } = offer;
      const outcome = await client.purchase({ saleId, quantity, purchaseToken: token }, { signal });
      if (outcome.code === 'committed' || outcome.code === 'accepted') seen.orderId = outcome.orderId;
    })();
    // Until the next update nothing awaits this promise. Without a handler, its failure would end the process.
    seen.answering.catch(() => {});
  }
  await seen.answering;
}
