/**
 * What is published of an entry instead of the buyer's id:
 *
 *   salt   = HMAC-SHA-256(salt key, "sale number buyer"), its first 16 bytes as hexadecimal characters
 *   digest = SHA-256("salt sale number buyer"), as hexadecimal characters
 *
 * The salt is secret, so nobody can try out ids until one fits. Only its buyer is told it, who can show with it that an entry is
 * theirs. When a buyer is erased, the digest is stored with the entry: the id is gone, and the draw can still be
 * checked. The holder of the salt key can try out ids for as long as the key exists. It is not deleted.
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
