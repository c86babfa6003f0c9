/**
 * Detects a proxy in front of Postgres that may give a connection another session for each transaction, such as PgBouncer with
 * `pool_mode=transaction`. With such a proxy the lock of a sale (sale-locks.ts) stays with a session that no process owns: no
 * sync works on that sale any more, because each one finds the lock taken.
 *
 * A single connection can't detect it, because an idle proxy answers with the same session each time. So a second connection
 * holds a transaction open, which occupies a session of the pool. Two connections with one session, or a connection whose
 * session changes, prove pooling. Meanwhile the first connection holds a session lock, as sync does. A proxy that keeps the
 * session for a connection with such a lock (RDS Proxy pins it) therefore passes.
 */
import { randomInt } from 'node:crypto';
import pg from 'pg';
import { StockadeError } from '../engine/errors.ts';

/** More than one round, because other clients of the pool may occupy the sessions in which the two connections would meet. */
const ROUNDS = 3;
const CONNECT_TIMEOUT_MS = 5_000;
const QUERY_TIMEOUT_MS = 10_000;
const STATEMENT_POOLING = /transaction blocks not allowed in statement pooling mode/;

export const SESSION_ADVICE =
  'Set DATABASE_URL to Postgres itself, or give Stockade a pool of its own with pool_mode=session.';

/** DATABASE_URL leads to a proxy that shares Postgres' sessions among its clients. Nothing was changed. */
export class NoSessions extends StockadeError {
  constructor(reason: string) {
    super('no_sessions', `DATABASE_URL leads to a proxy that shares sessions: ${reason}. ${SESSION_ADVICE}`);
  }
}

/** @throws NoSessions, or Postgres' errors. Don't call it for PGlite, which has one session. */
export async function assertSessions(url: string): Promise<void> {
  const reason = await findSharedSessions(url);
  if (reason !== undefined) throw new NoSessions(reason);
}

/** @returns what proves that sessions are shared; `undefined` if each connection keeps its own. @throws Postgres' errors */
export async function findSharedSessions(url: string): Promise<string | undefined> {
  const clients = [newClient(url), newClient(url)] as const;
  try {
    for (const client of clients) await client.connect();
    return await probe(...clients);
  } catch (error) {
    if (error instanceof Error && STATEMENT_POOLING.test(error.message)) {
      return 'it refuses transactions (statement pooling)';
    }
    throw error;
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  }
}

function newClient(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  });
  // Without this listener, a broken connection would end the process. The query that fails then reports it.
  client.on('error', () => {});
  return client;
}

async function probe(holder: pg.Client, occupant: pg.Client): Promise<string | undefined> {
  // No other process uses this key. So if the session can't be reached any more, the lock blocks nothing until it ends.
  const key = randomInt(2 ** 47);
  const session = await pidOf(holder);
  await holder.query('SELECT pg_advisory_lock($1)', [key]);
  for (let round = 0; round < ROUNDS; round++) {
    await occupant.query('BEGIN');
    const [other, own] = [await pidOf(occupant), await pidOf(holder)];
    if (other === session) await occupant.query('SELECT pg_advisory_unlock($1)', [key]);
    await occupant.query('ROLLBACK');
    if (other === session) return `two connections had the session ${session} at once`;
    if (own !== session) return `a connection had the session ${session}, then ${own}`;
  }
  const { rows } = await holder.query('SELECT pg_advisory_unlock($1) AS held', [key]);
  return rows[0].held ? undefined : `the session ${session} lost a lock that it held`;
}

async function pidOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
  return rows[0].pid;
}
