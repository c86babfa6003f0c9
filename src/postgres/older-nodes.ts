/**
 * Nodes of version 0.1.0 that run beside this one, during an upgrade. They don't know some of what this version does, and would
 * undo it: so it is refused until they have left (docs/operations/upgrade.md).
 *
 * Such a node is not in the list of processes (shop/process-list.ts). But it leases worker numbers, under a name without the mark
 * that this version puts before its own. A node that was killed counts until its lease ends, an hour at most. A `stockade sync`
 * of 0.1.0 leases nothing and is not seen.
 */
import type { Knex } from 'knex';
import { StockadeError } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import { type Database, rows } from './database.ts';

/** Begins the name of each holder of leases from version 0.2.0 on. A host name has no slash. */
export const HOLDER_MARK = 'node/';
/** How old an answer of `OlderNodes` may be, in milliseconds. */
const MAX_AGE_MS = 2_000;
/** A purchase waits for the answer for at most this time, in milliseconds. */
const MAX_READ_MS = 500;

interface OlderNode {
  /** `host:pid` */
  readonly node: string;
  readonly leasedUntil: Date;
}

function readOlderNodes(db: Knex): Promise<OlderNode[]> {
  return rows<OlderNode>(
    db,
    `SELECT regexp_replace(holder, ':[^:]*$', '') AS node, max(expires_at) AS "leasedUntil" FROM worker_leases
     WHERE expires_at > now() AND holder <> '' AND left(holder, ${HOLDER_MARK.length}) <> ?
     GROUP BY holder ORDER BY holder`,
    [HOLDER_MARK],
  );
}

/**
 * @param why what such a node would do: the end of a sentence
 * @throws StockadeError `unavailable` while a node of version 0.1.0 runs
 */
export async function refuseBesideOlderNodes(db: Knex, why: string): Promise<void> {
  const older = await readOlderNodes(db);
  if (older.length === 0) return;
  const names = older.map(
    ({ node, leasedUntil }) => `${node} (if it has died, wait until ${leasedUntil.toISOString()})`,
  );
  throw new StockadeError(
    'unavailable',
    `nothing was changed, because nodes of version 0.1.0 run, which ${why}: stop them first: ${names.join(', ')}`,
  );
}

/** For work that asks often: reads the leases at most once in MAX_AGE_MS. */
export class OlderNodes {
  readonly #db: Database;
  #found = false;
  #readAgainAtMs = Number.NEGATIVE_INFINITY;
  #read: Promise<void> | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** While Postgres does not answer: the last answer, or false. Never rejects. */
  async areRunning(): Promise<boolean> {
    if (monotonicMs() >= this.#readAgainAtMs) {
      this.#readAgainAtMs = monotonicMs() + MAX_AGE_MS;
      this.#read = this.#readNow();
    }
    await this.#read;
    return this.#found;
  }

  async #readNow(): Promise<void> {
    const nodes = await withTimeout(MAX_READ_MS, readOlderNodes(this.#db)).catch(() => undefined);
    if (nodes) this.#found = nodes.length > 0;
  }
}
