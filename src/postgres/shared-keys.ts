/** Random keys in Postgres that all nodes of a database share. */
import { randomBytes } from 'node:crypto';
import { type Database, rows } from './database.ts';

const SHARED_KEY_BYTES = 32;

/** The key of the order ids. */
export function orderIdKey(db: Database): Promise<Uint8Array> {
  return sharedKey(db, 'order_id_key');
}

/** A random key of 32 bytes, the same for all nodes of this database. The first call creates it. */
export async function sharedKey(db: Database, name: string): Promise<Uint8Array> {
  await db.raw('INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING', [
    name,
    randomBytes(SHARED_KEY_BYTES),
  ]);
  return (await readSharedKey(db, name))!;
}

/** @returns `undefined` if the key has not been created */
export async function readSharedKey(db: Database, name: string): Promise<Uint8Array | undefined> {
  const [row] = await rows<{ value: Buffer }>(db, 'SELECT value FROM settings WHERE name = ?', [name]);
  return row && new Uint8Array(row.value);
}
