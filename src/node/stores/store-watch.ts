import { withTimeout } from '../../lib/with-timeout.ts';
import { rows } from '../../postgres/database.ts';
import type { Stores } from './stores.ts';

/** A store that does not answer the simplest question within this time is away. */
const ANSWER_MS = 2_000;
/** Any sale will do, also one that is not there. */
const ANY_SALE = 'any';

/** Whether the stores answer now. Each question is bounded and never rejects. */
export class StoreWatch {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** The names of those that do not answer. */
  async away(): Promise<string[]> {
    const [backend, database] = await Promise.all([this.backendAway(), this.databaseAway()]);
    return [backend, database].filter((name) => name !== undefined);
  }

  /** The name of the stock's store if it does not answer. */
  async backendAway(): Promise<string | undefined> {
    const { backend, backendName } = this.#stores;
    const answers = await isInTime(backend.sales.versions([ANY_SALE]));
    return answers ? undefined : backendName === 'in-process' ? 'the in-process stock' : 'Redis';
  }

  async databaseAway(): Promise<string | undefined> {
    const { db, databaseName } = this.#stores;
    const answers = await isInTime(rows(db, 'SELECT 1'));
    return answers ? undefined : databaseName === 'postgres' ? 'Postgres' : 'PGlite';
  }
}

function isInTime(question: Promise<unknown>): Promise<boolean> {
  return withTimeout(ANSWER_MS, question).then(
    () => true,
    () => false,
  );
}
