/** Finds a text, such as a buyer's id, wherever a shop has stored it. */
import type { Redis } from 'ioredis';
import { type Database, rows } from '../../../src/postgres/database.ts';

/** The tables with a row that contains the text. */
export async function tablesWith(db: Database, text: string): Promise<string[]> {
  const tables = await rows<{ name: string }>(
    db,
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const hits = await rows(db, 'SELECT 1 FROM ?? AS t WHERE position(? in t::text) > 0 LIMIT 1', [
      name,
      text,
    ]);
    if (hits.length > 0) found.push(name);
  }
  return found;
}

/** The keys with this prefix that contain the text, in their name or their value. */
export async function keysWith(redis: Redis, prefix: string, text: string): Promise<string[]> {
  const found: string[] = [];
  for (const key of await redis.keys(`${prefix}*`)) {
    if (key.includes(text) || JSON.stringify(await readValue(redis, key)).includes(text)) found.push(key);
  }
  return found.sort();
}

async function readValue(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case 'hash':
      return redis.hgetall(key);
    case 'stream':
      return redis.xrange(key, '-', '+');
    case 'string':
      return redis.get(key);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, '0', '-1');
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'none':
      return '';
    default:
      throw new Error(`the value of ${key} is a ${type}: tell id-places.ts how to read it`);
  }
}
