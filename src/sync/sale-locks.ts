/**
 * Who works on which sale. A lock only spares two processes the same work: what keeps the data right are the cursors
 * (apply.ts) and the generation (rebuild.ts), so that a lock which is lost without notice does no harm.
 *
 * Across processes a lock is a Postgres session advisory lock on a connection of its own: it is free the moment its
 * holder dies. Within a process the same session would be granted it twice, so there it is a set.
 */
import pg from 'pg';
import { QUERY_TIMEOUT_MS } from './database.ts';

export interface SaleLocks {
  /** True if this caller holds the sale now. */
  tryLock(saleId: string): Promise<boolean>;
  unlock(saleId: string): Promise<void>;
  close(): Promise<void>;
}

export class LocalLocks implements SaleLocks {
  readonly #held = new Set<string>();

  async tryLock(saleId: string): Promise<boolean> {
    if (this.#held.has(saleId)) return false;
    this.#held.add(saleId);
    return true;
  }

  async unlock(saleId: string): Promise<void> {
    this.#held.delete(saleId);
  }

  async close(): Promise<void> {
    this.#held.clear();
  }
}

const CONNECT_TIMEOUT_MS = 5_000;
const KEY = "hashtextextended('stockade:sale:' || $1, 0)";

export class PostgresLocks implements SaleLocks {
  readonly #url: string;
  readonly #local = new LocalLocks();
  #client: Promise<pg.Client> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  async tryLock(saleId: string): Promise<boolean> {
    if (!(await this.#local.tryLock(saleId))) return false;
    try {
      const client = await this.#connected();
      const { rows } = await client.query(`SELECT pg_try_advisory_lock(${KEY}) AS held`, [saleId]);
      if (rows[0].held) return true;
    } catch (error) {
      await this.#local.unlock(saleId);
      this.#drop();
      throw error;
    }
    await this.#local.unlock(saleId);
    return false;
  }

  async unlock(saleId: string): Promise<void> {
    await this.#local.unlock(saleId);
    try {
      const client = await this.#client;
      await client?.query(`SELECT pg_advisory_unlock(${KEY})`, [saleId]);
    } catch {
      this.#drop();
    }
  }

  /** A connection that has failed may be half dead: with it all its locks are let go of, and the next is a new one. */
  #drop(): void {
    const dropped = this.#client;
    this.#client = undefined;
    void dropped?.then((client) => client.end()).catch(() => {});
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    this.#client = undefined;
    await client?.end();
  }

  #connected(): Promise<pg.Client> {
    this.#client ??= this.#connect().catch((error) => {
      this.#client = undefined;
      throw error;
    });
    return this.#client;
  }

  /** With the connection all locks are gone: the next attempt begins anew, and asks the database who holds what. */
  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
    });
    client.on('error', () => {
      this.#client = undefined;
    });
    await client.connect();
    return client;
  }
}
