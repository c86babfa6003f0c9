import type { Knex } from 'knex';
import { numbers, texts } from '../postgres/array-literal.ts';
import { rows } from '../postgres/database.ts';
import { digestOf } from './drawing.ts';

/** Conditions of the two indexes on (sale_id, buyer_id). Every place meets one of them. */
const INDEXED = ["state IN ('waiting', 'offered')", "state NOT IN ('waiting', 'offered')"];

/** A buyer's places in a sale: the condition `which` must name both, and is used twice. */
export function placesOfBuyer(which: string): string {
  return INDEXED.map((indexed) => `SELECT * FROM places WHERE ${which} AND ${indexed}`).join(' UNION ALL ');
}

/**
 * Replaces a buyer's id in its places. The digests of its entries are stored before, because they are calculated from the id: a
 * draw can still be checked afterwards. If the id is a pseudonym, the digest is stored already, and can't be calculated any more.
 */
export async function erasePlaces(
  trx: Knex.Transaction,
  saleId: string,
  { buyerId, pseudonym }: { readonly buyerId: string; readonly pseudonym: string },
): Promise<void> {
  const found = await rows<{ number: string; salt_key: Uint8Array }>(
    trx,
    `SELECT p.number::text, q.salt_key FROM (${placesOfBuyer('sale_id = ? AND buyer_id = ?')}) p
     JOIN queues q ON q.sale_id = p.sale_id ORDER BY p.number`,
    [saleId, buyerId, saleId, buyerId],
  );
  if (found.length === 0) return;
  const digests = found.map(({ number, salt_key: saltKey }) =>
    digestOf(saltKey, { saleId, number: Number(number), buyerId }),
  );
  await trx.raw(
    `UPDATE places p SET buyer_id = ?, digest = coalesce(p.digest, n.digest)
     FROM unnest(?::bigint[], ?::text[]) AS n (number, digest)
     WHERE p.sale_id = ? AND p.number = n.number`,
    [pseudonym, numbers(found.map(({ number }) => number)), texts(digests), saleId],
  );
}
