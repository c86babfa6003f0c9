/**
 * Who works on which sale. A lock only spares two processes the same work: what keeps the data right are the cursors
 * (apply/apply.ts) and the generation (rebuild/rebuild.ts), so that a lock which is lost without notice does no harm.
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
    const connection = this.#connected();
    try {
      const client = await connection;
      const { rows } = await client.query(`SELECT pg_try_advisory_lock(${KEY}) AS held`, [saleId]);
      if (rows[0].held) return true;
    } catch (error) {
      await this.#local.unlock(saleId);
      this.#drop(connection);
      throw error;
    }
    await this.#local.unlock(saleId);
    return false;
  }

  async unlock(saleId: string): Promise<void> {
    const connection = this.#client;
    await this.#local.unlock(saleId);
    try {
      const client = await connection;
      await client?.query(`SELECT pg_advisory_unlock(${KEY})`, [saleId]);
    } catch {
      this.#drop(connection);
    }
  }

  /** A connection that has failed may be half dead: with it all its locks are let go of, and the next is a new one. */
  #drop(connection: Promise<pg.Client> | undefined): void {
    this.#forget(connection);
    void connection?.then((client) => client.end()).catch(() => {});
  }

  /**
   * Not the one that has taken its place: a connection may fail once more long after it was dropped, and one that is
   * forgotten without being ended keeps its locks for good.
   */
  #forget(connection: Promise<pg.Client> | undefined): void {
    if (this.#client === connection) this.#client = undefined;
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    this.#client = undefined;
    await client?.end();
  }

  #connected(): Promise<pg.Client> {
    if (this.#client) return this.#client;
    const failed = () => this.#forget(connection);
    const connection = this.#connect(failed).catch((error) => {
      failed();
      throw error;
    });
    this.#client = connection;
    return connection;
  }

  /** With the connection all locks are gone: the next attempt begins anew, and asks the database who holds what. */
  async #connect(failed: () => void): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
    });
    client.on('error', failed);
    await client.connect();
    return client;
  }
}
