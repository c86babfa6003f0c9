/**
 * How many orders share a call. Batches are not a setting: a lane (one worker, one segment) collects what arrives while
 * its last batch is under way.
 */

/** The largest take, and the largest transaction of sync (`SYNC_BATCH_ROWS`), in orders. */
export const MOST_IN_A_TAKE = 256;
export const MOST_IN_A_TRANSACTION = 4_000;

/** A bisection halves an interval of seconds down to less than a nanosecond. */
const HALVINGS = 40;
/** No batch waits longer in a node that keeps up: purchases have a deadline. */
export const LONGEST_SECONDS = 2;

/** Of `places`, how many get at least one of `items` that are thrown at random. */
export function occupied(items: number, places: number): number {
  if (places <= 1) return Math.min(items, 1);
  return places * (1 - (1 - 1 / places) ** items);
}

/** The mean size of the batches that are not empty, at least 1. */
export function meanBatch(items: number, places: number, most = Number.POSITIVE_INFINITY): number {
  if (items <= 0) return 1;
  return Math.min(most, Math.max(1, items / occupied(items, places)));
}

/**
 * The cycle that feeds itself: what arrives in a cycle makes the next one as long as `lasts` says.
 * @param lasts seconds that the work of one cycle takes, if the last one took so many seconds
 * @returns the shortest cycle, in seconds, that is as long as the work which arrives in it; `undefined` if the work grows faster
 */
export function steadyCycle(lasts: (seconds: number) => number): number | undefined {
  let [low, high] = [0, LONGEST_SECONDS];
  if (!(lasts(high) <= high)) return undefined;
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (lasts(middle) <= middle) high = middle;
    else low = middle;
  }
  return high;
}

/**
 * The batches of a crowd of a fixed size, each of whom asks again when answered, as in `bench:http`. Half of them are in
 * the takes under way, the other half in those that are being collected. Two transactions are under way by turns: each has
 * between half of the crowd and all of it.
 */
export function batchesOfCrowd(buyers: number, segments: number): { take: number; transaction: number } {
  return {
    take: meanBatch(buyers / 2, segments, MOST_IN_A_TAKE),
    transaction: Math.min(MOST_IN_A_TRANSACTION, Math.max(1, (buyers * 3) / 4)),
  };
}
