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
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    const [quoted, from] = [name, template].map((word) => client.escapeIdentifier(word));
    await client.query(`CREATE DATABASE ${quoted} TEMPLATE ${from}`);
  } finally {
    await client.end();
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
