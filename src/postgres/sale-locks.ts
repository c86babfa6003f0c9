/**
 * Locks of sales, so that one sync works on a sale. A lock only saves double work: the cursors (sync/apply/apply.ts)
 * and the generation (rebuild/rebuild.ts) keep the data right, so a lock that is lost without notice does no harm.
 *
 * Loops that one process runs for all (events/sole-loop.ts) have such locks too, under names that no sale can have as its id.
 *
 * Across processes a lock is a Postgres session advisory lock on a connection of its own: it is free the moment its
 * holder dies. Within a process the same session would get it twice, so there it is a set.
 */
import pg from 'pg';
import { monotonicMs } from '../lib/monotonic.ts';
import { QUERY_TIMEOUT_MS, SESSION_SETTINGS } from './database.ts';

export interface SaleLocks {
  /** True if this caller holds the sale now. */
  tryLock(saleId: string): Promise<boolean>;
  /** Tries many locks in one statement. @returns the sales that this caller holds now */
  tryLocks(saleIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Whether this caller, which has got the lock, still has it. A lock that is lost must be unlocked before it is tried again. */
  holds(saleId: string): Promise<boolean>;
  unlock(saleId: string): Promise<void>;
  close(): Promise<void>;
}

export class LocalLocks implements SaleLocks {
  readonly #held = new Set<string>();

  async tryLock(saleId: string): Promise<boolean> {
    return (await this.tryLocks([saleId])).has(saleId);
  }

  async tryLocks(saleIds: readonly string[]): Promise<ReadonlySet<string>> {
    const free = new Set(saleIds.filter((saleId) => !this.#held.has(saleId)));
    for (const saleId of free) this.#held.add(saleId);
    return free;
  }

  async holds(saleId: string): Promise<boolean> {
    return this.#held.has(saleId);
  }

  async unlock(saleId: string): Promise<void> {
    this.#held.delete(saleId);
  }

  async close(): Promise<void> {
    this.#held.clear();
  }
}

const CONNECT_TIMEOUT_MS = 5_000;
/** A connection that has answered within this time is not asked whether it is still there. */
const ANSWER_COUNTS_MS = 1_000;
const keyOf = (name: string) => `hashtextextended('stockade:sale:' || ${name}, 0)`;

/** A connection with one query at a time: the next version of its driver refuses to queue queries. */
class Session {
  readonly #client: pg.Client;
  /** Resolves when the last query has ended. Never rejects. */
  #free: Promise<unknown> = Promise.resolve();
  #answeredAt = Number.NEGATIVE_INFINITY;

  constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Each query ends within QUERY_TIMEOUT_MS. If the connection fails or ends, waiting queries fail with it. */
  ask(sql: string, value?: string | readonly string[]): Promise<pg.QueryResult> {
    const answer = this.#free.then(() => this.#client.query(sql, value === undefined ? [] : [value]));
    this.#free = answer.then(
      () => {
        this.#answeredAt = monotonicMs();
      },
      () => {},
    );
    return answer;
  }

  /** A connection may have ended without a word. @throws if it gives no answer */
  async check(): Promise<void> {
    if (monotonicMs() - this.#answeredAt >= ANSWER_COUNTS_MS) await this.ask('SELECT 1');
  }

  end(): Promise<void> {
    return this.#client.end();
  }
}

export class PostgresLocks implements SaleLocks {
  readonly #url: string;
  readonly #local = new LocalLocks();
  #session: Promise<Session> | undefined;
  /** By lock: the connection that has got it. */
  readonly #gotBy = new Map<string, Promise<Session>>();

  constructor(url: string) {
    this.#url = url;
  }

  async tryLock(saleId: string): Promise<boolean> {
    return (await this.tryLocks([saleId])).has(saleId);
  }

  async tryLocks(saleIds: readonly string[]): Promise<ReadonlySet<string>> {
    const free = await this.#local.tryLocks(saleIds);
    if (free.size === 0) return free;
    const connection = this.#connected();
    let held: ReadonlySet<string> = new Set();
    try {
      const session = await connection;
      const { rows } = await session.ask(
        `SELECT id FROM unnest($1::text[]) AS id WHERE pg_try_advisory_lock(${keyOf('id')})`,
        [...free],
      );
      held = new Set(rows.map(({ id }) => id));
      for (const saleId of held) this.#gotBy.set(saleId, connection);
      return held;
    } catch (error) {
      this.#drop(connection);
      throw error;
    } finally {
      for (const saleId of free) if (!held.has(saleId)) await this.#local.unlock(saleId);
    }
  }

  /** While the connection lasts, it has all locks that it has got. */
  async holds(saleId: string): Promise<boolean> {
    const connection = this.#gotBy.get(saleId);
    const isLost = () => connection === undefined || connection !== this.#session;
    if (isLost()) return false;
    try {
      await (await connection)?.check();
    } catch {
      this.#drop(connection);
    }
    return !isLost();
  }

  async unlock(saleId: string): Promise<void> {
    const connection = this.#session;
    this.#gotBy.delete(saleId);
    await this.#local.unlock(saleId);
    try {
      const session = await connection;
      await session?.ask(`SELECT pg_advisory_unlock(${keyOf('$1')})`, saleId);
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
    this.#gotBy.clear();
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
    await client.query(SESSION_SETTINGS);
    return new Session(client);
  }
}
