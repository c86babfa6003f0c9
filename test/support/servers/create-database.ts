import { randomBytes } from 'node:crypto';
import pg from 'pg';

export interface DatabaseOptions {
  /** Makes the name readable. */
  readonly label?: string;
  /** A database on the same server to copy, without any sessions. Default: an empty one. */
  readonly template?: string;
}

/** Creates a database on the server at `serverUrl`. @returns its url */
export async function createDatabase(
  serverUrl: string,
  { label = 'test', template = 'template1' }: DatabaseOptions = {},
): Promise<string> {
  const name = `${label}_${randomBytes(6).toString('hex')}`;
  await onServer(serverUrl, (client) => {
    const [quoted, from] = [name, template].map((word) => client.escapeIdentifier(word));
    return client.query(`CREATE DATABASE ${quoted} TEMPLATE ${from}`);
  });
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Drops these databases of the server, except those to which something is still connected. */
export async function dropUnused(serverUrl: string, databaseUrls: readonly string[]): Promise<void> {
  const names = databaseUrls.map((url) => new URL(url).pathname.slice(1));
  await onServer(serverUrl, async (client) => {
    const { rows } = await client.query(
      `SELECT datname FROM pg_database WHERE datname = ANY($1)
       AND datname NOT IN (SELECT datname FROM pg_stat_activity WHERE datname IS NOT NULL)`,
      [names],
    );
    for (const { datname } of rows) await client.query(`DROP DATABASE ${client.escapeIdentifier(datname)}`);
  });
}

export async function onServer<T>(serverUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
