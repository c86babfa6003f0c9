import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** A new, empty database on the server at `serverUrl`; its url. The label only makes its name readable. */
export async function createDatabase(serverUrl: string, label = 'test'): Promise<string> {
  const name = `${label}_${randomBytes(6).toString('hex')}`;
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
