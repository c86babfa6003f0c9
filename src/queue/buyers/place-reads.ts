/** Reads places of which more must be known than that they wait. All that are asked for while a read is under way go with the next. */
import type { Database } from '../../postgres/database.ts';
import type { Place } from '../place.ts';
import { readPlaces } from '../places.ts';

/** Places in one read. */
const MAX_READ = 1_024;

interface Asked {
  readonly number: number;
  found(place: Place | undefined): void;
  failed(error: unknown): void;
}

/** Of one sale. */
export class PlaceReads {
  readonly #db: Database;
  readonly #saleId: string;
  #asked: Asked[] = [];
  #isRunning = false;

  constructor(db: Database, saleId: string) {
    this.#db = db;
    this.#saleId = saleId;
  }

  /** @returns `undefined`: there is no such place. @throws the database's error */
  read(number: number): Promise<Place | undefined> {
    return new Promise((found, failed) => {
      this.#asked.push({ number, found, failed });
      if (!this.#isRunning) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#asked.length > 0) {
      const asked = this.#asked.splice(0, MAX_READ);
      try {
        const numbers = [...new Set(asked.map(({ number }) => number))];
        const places = await readPlaces(this.#db, this.#saleId, numbers);
        const byNumber = new Map(places.map((place) => [place.number, place]));
        for (const { number, found } of asked) found(byNumber.get(number));
      } catch (error) {
        for (const { failed } of asked) failed(error);
      }
    }
    this.#isRunning = false;
  }
}
