import { readdirSync } from 'node:fs';
import pg from 'pg';
import type { Config } from '../../config/config.ts';
import { isLoopback, postgresHost } from '../../config/values/hosts.ts';
import { DELETING_TABLES, isRightMissing, lackingRights } from '../../postgres/app-role.ts';
import { findSharedSessions, SESSION_ADVICE } from '../../postgres/session-probe.ts';
import { describe, tlsAdviceFor } from '../terminal/explain.ts';
import { invokedAs } from '../terminal/invoked-as.ts';
import { type Check, checksOf, readClock, type StoreFindings } from './check.ts';
import { type ConnectionFacts, checkConnections, readConnections } from './postgres-connections.ts';
import { checkStandbys, readStandbys, type Standby } from './postgres-standbys.ts';

const { ok, warn, fail } = checksOf('postgres');
const CONNECT_TIMEOUT_MS = 3_000;
const QUERY_TIMEOUT_MS = 5_000;
const LEAST_VERSION = 140_000;
const MIGRATIONS = new URL('../../postgres/migrations/', import.meta.url);

export interface PostgresFacts {
  readonly version: string;
  readonly versionNumber: number;
  readonly fsync: string;
  readonly inRecovery: boolean;
  /** Transactions of this user in this database write nothing. */
  readonly readOnly: boolean;
  /** Names of applied migrations; `undefined` if the database was never migrated. */
  readonly applied: readonly string[] | undefined;
  /** Whether this user may create tables, and change those that are there. */
  readonly mayMigrate: boolean;
}

interface AllFacts extends PostgresFacts {
  readonly connections: ConnectionFacts;
  readonly standbys: readonly Standby[];
}

/** What the checks must know of the processes that will use this database. */
export interface PostgresPlan {
  /** Nodes that are to be started; 0: none. */
  readonly nodes: number;
  /** Whether sales will be deleted. */
  readonly deletes?: boolean;
}

export async function checkPostgres(
  config: Config,
  plan: PostgresPlan = { nodes: 1 },
): Promise<StoreFindings> {
  const { databaseUrl: url, dataDir } = config;
  if (!url) return { checks: [embedded(dataDir)] };
  const client = new pg.Client({
    connectionString: url.reveal(),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  });
  // Without this listener, a broken connection would end the process. The query that fails then reports it.
  client.on('error', () => {});
  try {
    await client.connect();
    const facts = await factsOf(client);
    const clock = await readClock('Postgres', async () => {
      const { rows } = await client.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms');
      return Number(rows[0].ms);
    });
    const shipped = shippedMigrations();
    const checks = [
      ok('reachable', `${url}`),
      encryption(url.reveal()),
      await sessions(url.reveal()),
      ...judgePostgres(facts, shipped),
      checkConnections(facts.connections, plan.nodes, config),
      checkStandbys(facts.standbys),
      ...(plan.nodes > 0 ? await rights(client, facts, shipped) : []),
      ...(plan.deletes ? [await deletion(client, facts)] : []),
    ];
    return { checks, clock };
  } catch (error) {
    if (isRightMissing(error)) return { checks: [ok('reachable', `${url}`), noRights(describe(error))] };
    const advice = 'Start Postgres, or correct DATABASE_URL (host, port, user, password, database).';
    return { checks: [fail('reachable', `${url}: ${describe(error)}`, tlsAdviceFor(error) ?? advice)] };
  } finally {
    await client.end().catch(() => {});
  }
}

/** Only the tables of this version can be checked. A node checks them again after it has migrated others. */
async function rights(
  client: pg.Client,
  { applied }: PostgresFacts,
  shipped: readonly string[],
): Promise<Check[]> {
  if (!shipped.every((name) => applied?.includes(name))) return [];
  const { sql, values } = lackingRights();
  let placed = 0;
  const { rows } = await client.query<{ what: string }>(
    sql.replaceAll('?', () => `$${++placed}`),
    values,
  );
  return rows.length === 0
    ? [ok('rights', 'this user has all that a node needs')]
    : [noRights(`this user lacks ${rows.map(({ what }) => what).join(', ')}`)];
}

const noRights = (found: string) => fail('rights', found, grantAdvice());

const grantAdvice = () => `Run \`${invokedAs()} migrate --grant-to <this user>\` as the owner of the tables.`;

/** Anyone who can read the traffic to Postgres gets the password, and with it all rights of the node. */
export function encryption(url: string): Check {
  const { searchParams } = new URL(url);
  const mode = searchParams.get('sslmode');
  const advice =
    'Set sslmode=verify-full in DATABASE_URL, or use a network that only your machines can reach.';
  if (mode === 'verify-full') return ok('encryption', 'TLS, and the certificate is checked');
  if (isLoopback(postgresHost(url)))
    return ok('encryption', 'none, and the connection does not leave this machine');
  return mode === 'no-verify'
    ? warn('encryption', 'TLS, but the certificate is not checked', advice)
    : warn('encryption', 'none', advice);
}

/** Locks of sales belong to a session. */
async function sessions(url: string): Promise<Check> {
  const reason = await findSharedSessions(url);
  return reason === undefined
    ? ok('sessions', 'each connection keeps its own')
    : fail('sessions', `a proxy shares them: ${reason}`, SESSION_ADVICE);
}

/** A database that was never migrated will belong to this user, who may do everything. */
async function deletion(client: pg.Client, { applied }: PostgresFacts): Promise<Check> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT name FROM unnest($1::text[]) AS name
     WHERE CASE WHEN to_regclass(name) IS NOT NULL THEN NOT has_table_privilege(name, 'DELETE') END`,
    [DELETING_TABLES],
  );
  if (applied === undefined || rows.length === 0) return ok('deletion', 'this user may delete sales');
  return fail(
    'deletion',
    `this user may not delete from ${rows.map(({ name }) => name).join(', ')}: the sale could not be removed`,
    `Run \`${invokedAs()} migrate --grant-to <that user> --may-delete-sales\` as the owner of the tables, or rehearse as the owner.`,
  );
}

function embedded(dataDir: string): Check {
  const found = `DATABASE_URL is not set: PGlite in ${dataDir} will be used`;
  try {
    import.meta.resolve('@electric-sql/pglite');
    import.meta.resolve('@electric-sql/pglite-socket');
    return ok('Postgres', found);
  } catch (error) {
    return fail(
      'Postgres',
      `${found}, but it is not installed: ${describe(error)}`,
      'Install again, or set DATABASE_URL.',
    );
  }
}

async function factsOf(client: pg.Client): Promise<AllFacts> {
  const { rows } = await client.query(`
    SELECT current_setting('server_version') AS version,
      current_setting('server_version_num')::int AS "versionNumber",
      current_setting('fsync') AS fsync,
      pg_is_in_recovery() AS "inRecovery",
      current_setting('transaction_read_only')::boolean AS "readOnly",
      to_regclass('stockade_migrations') IS NOT NULL AS migrated,
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AND NOT EXISTS (
        SELECT FROM pg_class WHERE oid = to_regclass('stockade_migrations') AND NOT pg_has_role(relowner, 'USAGE')
      ) AS "mayMigrate"`);
  const { migrated, ...found } = rows[0];
  const facts = {
    ...found,
    connections: await readConnections(client),
    standbys: await readStandbys(client),
  };
  if (!migrated) return { ...facts, applied: undefined };
  const { rows: applied } = await client.query<{ name: string }>(
    'SELECT name FROM stockade_migrations ORDER BY name',
  );
  return { ...facts, applied: applied.map(({ name }) => name) };
}

function shippedMigrations(): string[] {
  return readdirSync(MIGRATIONS).filter((name) => name.endsWith('.sql'));
}

export function judgePostgres(facts: PostgresFacts, shipped: readonly string[]): Check[] {
  return [version(facts), role(facts), durability(facts), migrations(facts, shipped)];
}

function version({ version: found, versionNumber }: PostgresFacts): Check {
  return versionNumber >= LEAST_VERSION
    ? ok('version', found)
    : fail('version', found, 'Install Postgres 14 or newer.');
}

function role({ inRecovery, readOnly }: PostgresFacts): Check {
  if (inRecovery)
    return fail('role', 'a standby, which takes no writes', 'Point DATABASE_URL at the primary.');
  return readOnly
    ? fail(
        'role',
        'primary, but it takes no writes of this user',
        'Set default_transaction_read_only off for the server, this database and this user.',
      )
    : ok('role', 'primary');
}

/** An order answered 201 must outlive a power cut. Each session of Stockade sees to `synchronous_commit` itself. */
function durability({ fsync }: PostgresFacts): Check {
  return fsync === 'on'
    ? ok('fsync', 'on')
    : fail('fsync', fsync, 'Set fsync on: without it a power cut may destroy the whole database.');
}

function migrations({ applied, mayMigrate }: PostgresFacts, shipped: readonly string[]): Check {
  const pending = shipped.filter((name) => !applied?.includes(name));
  const unknown = (applied ?? []).filter((name) => !shipped.includes(name));
  if (unknown.length > 0) {
    const found = `the database is newer than this program: it has ${unknown.join(', ')}`;
    return fail(
      'migrations',
      found,
      'Use the version of Stockade that migrated the database, or a newer one.',
    );
  }
  if (pending.length > 0) {
    const found = applied === undefined ? 'not applied yet' : `not applied yet: ${pending.join(', ')}`;
    if (!mayMigrate) return fail('migrations', `${found}, and this user may not apply them`, grantAdvice());
    return warn(
      'migrations',
      found,
      `Run \`${invokedAs()} migrate\`; a node does it by itself when it starts.`,
    );
  }
  return ok('migrations', `all ${shipped.length} applied`);
}
