import type { Knex } from 'knex';
import { numbers, texts } from '../postgres/array-literal.ts';
import { rows } from '../postgres/database.ts';
import { digestOf } from './drawing.ts';

/**
 * Replaces a buyer's id in its places. The digests of its entries are stored before, because they are calculated from the id: a
 * draw can still be checked afterwards.
 */
export async function erasePlaces(
  trx: Knex.Transaction,
  saleId: string,
  { buyerId, pseudonym }: { readonly buyerId: string; readonly pseudonym: string },
): Promise<void> {
  const found = await rows<{ number: string; salt_key: Uint8Array }>(
    trx,
    `SELECT p.number::text, q.salt_key FROM (
       SELECT number, sale_id FROM places WHERE sale_id = ? AND buyer_id = ? AND state IN ('waiting', 'offered')
       UNION ALL
       SELECT number, sale_id FROM places WHERE sale_id = ? AND buyer_id = ? AND state NOT IN ('waiting', 'offered')) p
     JOIN queues q ON q.sale_id = p.sale_id ORDER BY p.number`,
    [saleId, buyerId, saleId, buyerId],
  );
  if (found.length === 0) return;
  const digests = found.map(({ number, salt_key: saltKey }) =>
    digestOf(saltKey, { saleId, number: Number(number), buyerId }),
  );
  await trx.raw(
    `UPDATE places p SET buyer_id = ?, digest = n.digest FROM unnest(?::bigint[], ?::text[]) AS n (number, digest)
     WHERE p.sale_id = ? AND p.number = n.number`,
    [pseudonym, numbers(found.map(({ number }) => number)), texts(digests), saleId],
  );
}
