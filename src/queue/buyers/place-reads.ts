/**
 * Reads places of which more must be known than that they wait. All that are asked for while a read is under way go with the next.
 *
 * A read may be on a connection that hangs. After a limit those who wait for it are told that it failed, and the next one goes
 * on another connection. Otherwise nobody near the head would hear of an offer until the database's driver gives up.
 */
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Database } from '../../postgres/database.ts';
import type { Place } from '../place.ts';
import { readPlaces } from '../places.ts';
import { deferred } from './deferred.ts';

/** Places in one read. */
const MAX_READ = 1_024;

/** A place that is wanted. If it is asked for more than once, all are answered together. */
interface Asked {
  readonly place: Promise<Place | undefined>;
  found(place: Place | undefined): void;
  failed(error: Error): void;
}

/** Of one sale. */
export class PlaceReads {
  readonly #db: Database;
  readonly #saleId: string;
  readonly #limitMs: number;
  /** By number: for the next read. */
  readonly #asked = new Map<number, Asked>();
  #isRunning = false;

  /** @param limitMs how long one read is waited for */
  constructor(db: Database, saleId: string, limitMs: number) {
    this.#db = db;
    this.#saleId = saleId;
    this.#limitMs = limitMs;
  }

  /** @returns `undefined`: there is no such place. @throws the database's error; StockadeError if it does not answer in time */
  read(number: number): Promise<Place | undefined> {
    const known = this.#asked.get(number);
    if (known) return known.place;
    const { promise, resolve, reject } = deferred<Place | undefined>();
    this.#asked.set(number, { place: promise, found: resolve, failed: reject });
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#asked.size > 0) {
      const batch = this.#next();
      try {
        const places = await withTimeout(
          this.#limitMs,
          readPlaces(this.#db, this.#saleId, [...batch.keys()]),
        );
        const byNumber = new Map(places.map((place) => [place.number, place]));
        for (const [number, { found }] of batch) found(byNumber.get(number));
      } catch (error) {
        for (const { failed } of batch.values()) failed(error as Error);
      }
    }
    this.#isRunning = false;
  }

  #next(): Map<number, Asked> {
    const batch = new Map([...this.#asked].slice(0, MAX_READ));
    for (const number of batch.keys()) this.#asked.delete(number);
    return batch;
  }
}
