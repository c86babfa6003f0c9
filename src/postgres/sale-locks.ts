/**
 * Locks of sales, so that one sync works on a sale. A lock only saves double work: the cursors (sync/apply/apply.ts)
 * and the generation (rebuild/rebuild.ts) keep the data right, so a lock that is lost without notice does no harm.
 *
 * Across processes a lock is a Postgres session advisory lock on a connection of its own: it is free the moment its
 * holder dies. Within a process the same session would get it twice, so there it is a set.
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

/** A connection with one query at a time: the next version of its driver refuses to queue queries. */
class Session {
  readonly #client: pg.Client;
  /** Resolves when the last query has ended. Never rejects. */
  #free: Promise<unknown> = Promise.resolve();

  constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Each query ends within QUERY_TIMEOUT_MS. If the connection fails or ends, waiting queries fail with it. */
  ask(sql: string, saleId: string): Promise<pg.QueryResult> {
    const answer = this.#free.then(() => this.#client.query(sql, [saleId]));
    this.#free = answer.catch(() => {});
    return answer;
  }

  end(): Promise<void> {
    return this.#client.end();
  }
}

export class PostgresLocks implements SaleLocks {
  readonly #url: string;
  readonly #local = new LocalLocks();
  #session: Promise<Session> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  async tryLock(saleId: string): Promise<boolean> {
    if (!(await this.#local.tryLock(saleId))) return false;
    const connection = this.#connected();
    try {
      const session = await connection;
      const { rows } = await session.ask(`SELECT pg_try_advisory_lock(${KEY}) AS held`, saleId);
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
    const connection = this.#session;
    await this.#local.unlock(saleId);
    try {
      const session = await connection;
      await session?.ask(`SELECT pg_advisory_unlock(${KEY})`, saleId);
    } catch {
      this.#drop(connection);
    }
  }

  /** A failed connection may be half open: ending it releases its locks, and the next query opens a new one. */
  #drop(connection: Promise<Session> | undefined): void {
    this.#forget(connection);
    void connection?.then((session) => session.end()).catch(() => {});
  }

  /**
   * Forgets this connection, but not its successor: a connection may report an error again long after it was dropped,
   * and a connection that is forgotten without being ended keeps its locks.
   */
  #forget(connection: Promise<Session> | undefined): void {
    if (this.#session === connection) this.#session = undefined;
  }

  async close(): Promise<void> {
    const session = await this.#session?.catch(() => undefined);
    this.#session = undefined;
    await session?.end();
  }

  #connected(): Promise<Session> {
    if (this.#session) return this.#session;
    const failed = () => this.#forget(connection);
    const connection = this.#connect(failed).catch((error) => {
      failed();
      throw error;
    });
    this.#session = connection;
    return connection;
  }

  /** When the connection ends, all locks are gone: the next attempt opens a new connection and asks the database. */
  async #connect(failed: () => void): Promise<Session> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
    });
    client.on('error', failed);
    await client.connect();
    return new Session(client);
  }
}
