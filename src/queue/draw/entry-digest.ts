/**
 * What is published of an entry instead of the buyer's id:
 *
 *   salt   = HMAC-SHA-256(salt key, "sale number buyer"), its first 16 bytes as hexadecimal characters
 *   digest = SHA-256("salt sale number buyer"), as hexadecimal characters
 *
 * Only the buyer is told the salt. So the buyer can show that an entry is theirs, and nobody else can try out ids until one
 * fits. The digest is stored with the entry: after an erasure the id is gone, and the draw can still be checked. As long as the
 * salt key exists, its holder can try out ids too, so it must be deleted when the sale is closed.
 *
 * Ids have no spaces, so different values always give different texts.
 */
import { createHmac, hash, randomBytes } from 'node:crypto';

const SALT_KEY_BYTES = 32;
/** Nobody can try out 2^128 salts. */
const SALT_BYTES = 16;

export interface Entry {
  readonly saleId: string;
  readonly number: number;
  readonly buyerId: string;
}

/** The secret of a sale from which the salts are calculated, so that none is stored. */
export function newSaltKey(): Uint8Array {
  return randomBytes(SALT_KEY_BYTES);
}

/** What the buyer is told: 32 hexadecimal characters. The same entry always has the same salt. */
export function entrySalt(saltKey: Uint8Array, entry: Entry): string {
  return createHmac('sha256', saltKey).update(textOf(entry)).digest().subarray(0, SALT_BYTES).toString('hex');
}

/** @param salt the one of this entry */
export function entryDigest(salt: string, entry: Entry): string {
  return hash('sha256', `${salt} ${textOf(entry)}`, 'hex');
}

function textOf({ saleId, number, buyerId }: Entry): string {
  return `${saleId} ${number} ${buyerId}`;
}
