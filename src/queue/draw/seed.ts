/**
 * The seed of a draw and its commitment. The seed is made with the sale and stays secret until the opening. The commitment is
 * published at once: it says nothing about the seed, but no other seed fits it. docs/internals/draw.md says what this proves.
 */
import { hash, randomBytes } from 'node:crypto';

export const SEED_BYTES = 32;

export function newSeed(): Uint8Array {
  return randomBytes(SEED_BYTES);
}

/** SHA-256 of the seed's bytes, as 64 lower-case hexadecimal characters. */
export function commitmentOf(seed: Uint8Array): string {
  return hash('sha256', seed, 'hex');
}
