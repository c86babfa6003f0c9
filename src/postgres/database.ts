import { setTimeout as delay } from 'node:timers/promises';
import createKnex, { type Knex } from 'knex';
import { monotonicMs } from '../lib/monotonic.ts';
import { cancelStatement, type ServerSession, statementBegins } from './cancel.ts';

export type Database = Knex;

export interface DatabaseOptions {
  readonly url: string;
  /** 1 for PGlite, which has one session only. */
  readonly maxConnections: number;
  /** 0: no bound. Default: QUERY_TIMEOUT_MS. */
  readonly queryTimeoutMs?: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** A query that takes longer is abandoned, so that a frozen database can't block a loop for ever. */
export const QUERY_TIMEOUT_MS = 30_000;
const ACQUIRE_TIMEOUT_MS = 10_000;

/**
 * Settings of each session, whatever the server, the database or the role has as its default.
 *
 * - The statements are written for `read committed`: those that wait for a row go on with what the row has then. At a higher level they
 *   fail instead.
 * - The driver reads times in ISO format only.
 * - With `synchronous_commit` off, Postgres may lose an order that was answered `201`. Stronger levels than `on` stay.
 * - A session that holds the locks of sales may be idle for long.
 */
export const SESSION_SETTINGS = `SELECT set_config('default_transaction_isolation', 'read committed', false),
  set_config('datestyle', 'ISO', false),
  set_config('idle_session_timeout', '0', false),
  CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END`;

export function openDatabase(options: DatabaseOptions): Database {
  const { url, maxConnections, queryTimeoutMs = QUERY_TIMEOUT_MS } = options;
  const db = createKnex({
    client: 'pg',
    connection: {
      connectionString: url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: queryTimeoutMs,
      keepAlive: true,
    },
    pool: { min: 0, max: maxConnections, afterCreate: applySettings },
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    // knex would write to the console the same errors that it throws.
    log: { warn() {}, error() {}, deprecate() {}, debug() {} },
  });
  discardLostConnections(db, options);
  return db;
}

interface NewConnection {
  query(sql: string, done: (error: Error | null) => void): void;
  end(): Promise<void>;
}

/** Called by knex for each new connection, before anybody else uses it. If it fails, knex forgets the connection and leaves it open. */
function applySettings(connection: NewConnection, done: (error: Error | null) => void): void {
  connection.query(SESSION_SETTINGS, (error) => {
    if (error) void connection.end().catch(() => {});
    done(error);
  });
}

/**
 * An abandoned query leaves its connection waiting for the answer, perhaps for ever (a host that vanished without
 * closing). Later queries on it would wait behind that one, so it is removed from the pool, and the server is asked to
 * cancel the query (cancel.ts). A connection is also removed when its server announces the end of the session, because
 * the next query on it would fail. knex marks such a connection with `__knex__disposed`, and identifies each by
 * `__knexUid`.
 */
function discardLostConnections(db: Database, { maxConnections }: DatabaseOptions): void {
  interface Connection extends ServerSession {
    __knexUid: string;
    __knex__disposed?: unknown;
    end(): Promise<void>;
  }
  interface Query {
    readonly sql: string;
    readonly __knexUid: string;
    /** Missing for BEGIN, COMMIT and ROLLBACK, of which knex does not tell the end. */
    readonly __knexQueryUid?: string;
  }
  const connections = new Map<string, Connection>();
  const ended = new Map<string, () => void>();
  const { pool } = db.client as { pool: { on(event: string, listener: (...args: never[]) => void): void } };
  pool.on('createSuccess', (_: number, connection: Connection) => {
    connections.set(connection.__knexUid, connection);
  });
  pool.on('destroySuccess', (_: number, connection: Connection) => {
    connections.delete(connection.__knexUid);
  });
  const discard = (uid: string, reason: unknown) => {
    const connection = connections.get(uid);
    if (!connection || connection.__knex__disposed) return;
    connection.__knex__disposed = reason;
    void connection.end().catch(() => {});
    // PGlite takes one connection.
    if (maxConnections > 1) cancelStatement(connection);
  };
  const ends = ({ __knexQueryUid: uid = '' }: Query) => {
    ended.get(uid)?.();
    ended.delete(uid);
  };
  db.on('query', ({ sql, __knexUid, __knexQueryUid }: Query) => {
    const end = statementBegins(sql, () => discard(__knexUid, new Error('given up')));
    // If it stayed among the statements under way, the end of the work would discard a connection that others use by then.
    if (__knexQueryUid === undefined) end?.();
    else if (end) ended.set(__knexQueryUid, end);
  });
  db.on('query-response', (_: unknown, query: Query) => ends(query));
  db.on('query-error', (error: Error, query: Query) => {
    ends(query);
    const isLost = READ_TIMEOUT.test(error.message) || sqlState(error)?.startsWith(SERVER_ENDS);
    if (isLost) discard(query.__knexUid, error);
  });
}

/** Of `pg`; knex puts the statement before it. */
const READ_TIMEOUT = /\bQuery read timeout$/;

/** Class of the errors that a server sends when it shuts down, has crashed, or was told to end the session. */
const SERVER_ENDS = '57P';

/** Errors that waiting does not resolve: no such database, wrong password, no such role, a right that the role lacks. */
const PERMANENT = new Set(['3D000', '28P01', '28000', '42501']);
/** Nor these: a refused certificate, or a server without TLS. */
const NO_TLS = /certificate|does not support SSL/;

/**
 * Waits until the database can be used, at most `timeoutMs`: it may start at this moment, or have no free connection.
 * @param waits called once, with the error, if it can't be used at once
 * @throws the last error
 */
export async function awaitDatabase(
  db: Database,
  timeoutMs: number,
  waits: (error: unknown) => void,
): Promise<void> {
  const deadline = monotonicMs() + timeoutMs;
  let isFirst = true;
  for (;;) {
    try {
      await db.raw('select 1');
      return;
    } catch (error) {
      if (monotonicMs() >= deadline || isPermanent(error)) throw error;
      if (isFirst) waits(error);
      isFirst = false;
      await delay(100);
    }
  }
}

function isPermanent(error: unknown): boolean {
  return PERMANENT.has(sqlState(error) ?? '') || (error instanceof Error && NO_TLS.test(error.message));
}

/** SQLSTATE of a Postgres error; `undefined` for anything else, such as a connection that broke (`EPIPE` has no digit). */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** A row was locked for longer than `lock_timeout`. */
export const LOCK_NOT_AVAILABLE = '55P03';
/** Class of the errors of connections. A proxy sends them too, when it has lost its own connection to Postgres. */
export const CONNECTION_ERRORS = '08';
/** Of `pg` and of Node; knex puts the statement before it. */
const BROKEN = /(?:^| - )(?:Connection terminated[^-]*|read ECONNRESET|write EPIPE)$/;

/** Whether a statement failed because its connection broke, or because its server ended it. It may have been executed. */
export function isConnectionLost(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return state.startsWith(SERVER_ENDS) || state.startsWith(CONNECTION_ERRORS);
  return error instanceof Error && BROKEN.test(error.message);
}

/** The rows of a raw query. */
export async function rows<T>(
  db: Knex,
  sql: string,
  bindings: readonly Knex.RawBinding[] = [],
): Promise<T[]> {
  const result = await db.raw(sql, bindings);
  return result.rows as T[];
}
