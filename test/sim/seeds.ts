/** Runs seeds in this process, on any copy of the source. */
import { pathToFileURL } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import type { Seeds } from './session.ts';

export class SeedRunner {
  readonly #db: PGlite;
  #root = '';
  #seeds: Seeds | undefined;

  private constructor(db: PGlite) {
    this.#db = db;
  }

  /** Starts PGlite, in real time and only once, because that takes longest. */
  static async open(): Promise<SeedRunner> {
    return new SeedRunner(await PGlite.create({}));
  }

  /** @param root of the repository or a copy, ending in a slash */
  async seedsOf(root: string): Promise<Seeds> {
    if (this.#seeds && this.#root === root) return this.#seeds;
    const session = await import(pathToFileURL(`${root}test/sim/session.ts`).href);
    this.#root = root;
    this.#seeds = (await session.openSeeds(this.#db)) as Seeds;
    return this.#seeds;
  }
}
