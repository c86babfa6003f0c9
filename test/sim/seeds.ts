/** Runs seeds in this process, on any bundle of the source. */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import type { Seeds } from './session.ts';

export class SeedRunner {
  readonly #db: PGlite;
  #session = '';
  #seeds: Seeds | undefined;

  private constructor(db: PGlite) {
    this.#db = db;
  }

  /**
   * Starts PGlite, in real time and only once, because that takes longest.
   * @param archive of a data folder of PGlite: to create one takes five seconds of processor time
   */
  static async open(archive?: string): Promise<SeedRunner> {
    const data = archive === undefined ? {} : { loadDataDir: new Blob([readFileSync(archive)]) };
    return new SeedRunner(await PGlite.create(data));
  }

  /** @param session path of session.ts, or of a bundle of it */
  async seedsOf(session: string): Promise<Seeds> {
    if (this.#seeds && this.#session === session) return this.#seeds;
    const { openSeeds } = await import(pathToFileURL(session).href);
    this.#session = session;
    this.#seeds = (await openSeeds(this.#db)) as Seeds;
    return this.#seeds;
  }
}
