/**
 * The random numbers of a draw. Block k is HMAC-SHA-256(seed, entries' hash ‖ k): the hash as 32 bytes, k as 4 bytes from 0 on.
 * A block gives eight words of 32 bits, one after the other. All numbers are big-endian.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

const HASH_BYTES = 32;
const WORD_BYTES = 4;
const WORDS = 2 ** 32;

export class RandomNumbers {
  readonly #seed: KeyObject;
  readonly #message: Buffer;
  #blocks = 0;
  #block = Buffer.alloc(0);
  #at = 0;

  /** @param entriesHash 64 hexadecimal characters */
  constructor(seed: Uint8Array, entriesHash: string) {
    this.#seed = createSecretKey(seed);
    this.#message = Buffer.alloc(HASH_BYTES + WORD_BYTES);
    this.#message.write(entriesHash, 'hex');
  }

  /** The next word, from 0 to 2^32 - 1. */
  readonly word = (): number => {
    if (this.#at === this.#block.length) this.#nextBlock();
    const word = this.#block.readUInt32BE(this.#at);
    this.#at += WORD_BYTES;
    return word;
  };

  #nextBlock(): void {
    this.#message.writeUInt32BE(this.#blocks++, HASH_BYTES);
    this.#block = createHmac('sha256', this.#seed).update(this.#message).digest();
    this.#at = 0;
  }
}

/**
 * A number from 0 to `bound` - 1, each equally likely. Words from the greatest multiple of `bound` on are skipped: with them the
 * small numbers would be likelier. With ten million places, one word in 400 at most is skipped.
 */
export function below(bound: number, word: () => number): number {
  const end = WORDS - (WORDS % bound);
  for (;;) {
    const drawn = word();
    if (drawn < end) return drawn % bound;
  }
}
