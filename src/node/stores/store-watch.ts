import { withTimeout } from '../../lib/with-timeout.ts';
import { rows } from '../../postgres/database.ts';
import type { Stores } from './stores.ts';

/** A store that does not answer a trivial query within this time counts as away. */
const ANSWER_MS = 2_000;
/** The id in the query to the backend. The sale need not exist. */
const ANY_SALE = 'any';

/** Finds out whether the stores answer now. Each check takes a bounded time and never rejects. */
export class StoreWatch {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** The names of the stores that do not answer. */
  async away(): Promise<string[]> {
    const [backend, database] = await Promise.all([this.backendAway(), this.databaseAway()]);
    return [backend, database].filter((name) => name !== undefined);
  }

  /** The name of the stock's store if it does not answer. */
  async backendAway(): Promise<string | undefined> {
    const { backend, backendName } = this.#stores;
    const answers = await answersInTime(backend.sales.versions([ANY_SALE]));
    return answers ? undefined : backendName === 'in-process' ? 'the in-process stock' : 'Redis';
  }

  async databaseAway(): Promise<string | undefined> {
    const { db, databaseName } = this.#stores;
    const answers = await answersInTime(rows(db, 'SELECT 1'));
    return answers ? undefined : databaseName === 'postgres' ? 'Postgres' : 'PGlite';
  }
}

function answersInTime(query: Promise<unknown>): Promise<boolean> {
  return withTimeout(ANSWER_MS, query).then(
    () => true,
    () => false,
  );
}
