/**
 * Q5 for the auditor: a rank is told to be hopeless only if units that may come could all go to places that wait before it.
 *
 * The head reads for some time before it writes. So what it writes is wrong only if no moment of that time would have made it right.
 */
import { time } from '../machines/virtual-time.ts';
import type { Truth } from './books.ts';
import type { PlaceTruth, QueueTruth } from './queue-watch.ts';

/** A head reads and writes how a queue stands within this time, also while a connection hangs. */
const WRITTEN_MS = 1_000;

export class Hopes {
  /** The first hopeless rank of each moment, if the head had known all; the newest last. */
  readonly #bounds: { readonly at: number; readonly rank: number }[] = [];

  /** Ranks are others from now on. */
  drawn(): void {
    this.#bounds.length = 0;
  }

  /** @param waiting by rank @returns what is wrong with the newest hopeless rank */
  check(
    sale: Truth,
    now: QueueTruth,
    before: QueueTruth | undefined,
    waiting: readonly PlaceTruth[],
    rankOf: (number: number) => number,
  ): string | undefined {
    const coming = sale.stock + offeredUnits(now);
    const next = firstHopeless(waiting, now.fit, coming);
    const rank = next ? rankOf(next.number) : Number.POSITIVE_INFINITY;
    if (this.#bounds.at(-1)?.rank !== rank) this.#bounds.push({ at: time.now, rank });
    // The first one held until the second began.
    while (this.#bounds.length > 1 && this.#bounds[1]!.at < time.now - WRITTEN_MS) this.#bounds.shift();
    const told = now.hopelessFrom;
    if (told === null || told === before?.hopelessFrom) return undefined;
    const least = Math.min(...this.#bounds.map((bound) => bound.rank));
    if (told >= least) return undefined;
    return `${coming} units may come, rank ${told} is told to be hopeless, and none before ${least} was: ${JSON.stringify(now.places)}`;
  }
}

/**
 * The first of the places that wait, in their order, to which none of the units that may come can go. With `pass`, only those that want
 * one unit surely take one.
 */
export function firstHopeless(
  waiting: readonly PlaceTruth[],
  fit: QueueTruth['fit'],
  coming: number,
): PlaceTruth | undefined {
  let left = coming;
  for (const place of waiting) {
    if (left === 0) return place;
    if (fit !== 'pass' || place.quantity === 1) left--;
  }
  return undefined;
}

export function offeredUnits({ places, orders }: QueueTruth): number {
  return places.reduce(
    (sum, { state, order }) => sum + (state === 'offered' ? (orders[order!]?.units ?? 0) : 0),
    0,
  );
}
