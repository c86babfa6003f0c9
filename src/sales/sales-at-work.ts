/**
 * The sales that the reconciler compares with the backend: those that are not closed are read all at once, the closed ones page by
 * page.
 */
import type { Knex } from 'knex';
import type { SaleState } from '../engine/contract.ts';
import { rulesOf } from '../engine/sale/rules.ts';
import { rows } from '../postgres/database.ts';
import type { RawSale } from './sale-rows.ts';

/** What the reconciler compares of a sale. */
export interface ComparedSale {
  readonly id: string;
  readonly generation: number;
  readonly state: SaleState;
  /** See engine/sale/rules.ts. */
  readonly rules: string;
  /** The backend must not hold it. */
  readonly isArchived: boolean;
}

const COMPARED =
  'id, generation, state, starts_at, ends_at, require_token, per_buyer_limit, archived_at, queue';

type RawCompared = Pick<
  RawSale,
  | 'id'
  | 'generation'
  | 'state'
  | 'starts_at'
  | 'ends_at'
  | 'require_token'
  | 'per_buyer_limit'
  | 'archived_at'
  | 'queue'
>;

function decodeCompared({ id, generation, state, ...raw }: RawCompared): ComparedSale {
  const [startsAt, endsAt] = [raw.starts_at.getTime(), raw.ends_at?.getTime()];
  const { require_token: requireToken, per_buyer_limit: perBuyerLimit } = raw;
  const queue = raw.queue !== 'off';
  const rules = rulesOf({ startsAt, endsAt, requireToken, perBuyerLimit, queue });
  return { id, generation, state, rules, isArchived: raw.archived_at !== null };
}

/**
 * SQL: a number that changes with any of the compared columns. The hash of a row is a weighted sum of the hashes of its
 * columns. In a sum of such hashes it would not show if one sale lost a value and another got the same. So each row's hash is
 * hashed again.
 */
const SUM = `sum(hashtextextended(hash_record_extended(ROW(${COMPARED}), 0)::text, 0))`;

/**
 * The sales that a sync may have to work on. They are read each second and rarely differ from the last time. So one statement
 * first adds up a hash of each sale, and the rows are read only if the sum differs from that of the rows in memory.
 */
export class SalesAtWork {
  readonly #db: Knex;
  #unclosed: readonly ComparedSale[] = [];
  #unclosedIds: ReadonlySet<string> = new Set();
  /** Of exactly the rows in `#unclosed`; `null`: there are none. */
  #sum: string | null = null;

  constructor(db: Knex) {
    this.#db = db;
  }

  /** Sales that are not closed, the newest first, and then those of `held` that are closed. */
  async read(held: readonly string[]): Promise<readonly ComparedSale[]> {
    await this.#readUnclosed();
    const others = held.filter((id) => !this.#unclosedIds.has(id));
    if (others.length === 0) return this.#unclosed;
    const closed = await rows<RawCompared>(
      this.#db,
      `SELECT ${COMPARED} FROM sales WHERE state = 'closed' AND id = ANY (?)`,
      [others],
    );
    return [...this.#unclosed, ...closed.map(decodeCompared)];
  }

  async #readUnclosed(): Promise<void> {
    const [present] = await rows<{ sum: string | null }>(
      this.#db,
      `SELECT ${SUM}::text AS sum FROM sales WHERE state <> 'closed'`,
    );
    if (present!.sum === this.#sum) return;
    // The statement adds up its own rows: since the first one, a sale may have changed, and it may change back.
    const unclosed = await rows<RawCompared & { sum: string }>(
      this.#db,
      `SELECT ${COMPARED}, (${SUM} OVER ())::text AS sum FROM sales WHERE state <> 'closed'
       ORDER BY created_at DESC, id`,
    );
    this.#unclosed = unclosed.map(decodeCompared);
    this.#unclosedIds = new Set(unclosed.map(({ id }) => id));
    this.#sum = unclosed[0]?.sum ?? null;
  }
}

/** At most `limit` closed sales, archived ones too, none that is being deleted, with ids after `after`, in the order of ids. */
export async function readClosedSales(db: Knex, after: string, limit: number): Promise<ComparedSale[]> {
  const found = await rows<RawCompared>(
    db,
    `SELECT ${COMPARED} FROM sales WHERE state = 'closed' AND deleting_since IS NULL AND id > ?
     ORDER BY id LIMIT ?`,
    [after, limit],
  );
  return found.map(decodeCompared);
}
