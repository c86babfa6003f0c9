import type { Knex } from 'knex';
import { texts } from '../postgres/array-literal.ts';
import { rows } from '../postgres/database.ts';

/** Which of these order ids Postgres has, rejected ones included. */
export async function knownOrders(db: Knex, orderIds: readonly string[]): Promise<Set<string>> {
  const known = await rows<{ id: string }>(
    db,
    'SELECT order_id::text AS id FROM orders WHERE order_id = ANY (?::bigint[])',
    [texts(orderIds)],
  );
  return new Set(known.map(({ id }) => id));
}
