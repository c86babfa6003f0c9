/**
 * HalfSipHash-2-4 with a result of 64 bits: a fast keyed hash for tables whose keys are chosen by strangers. Without the hash
 * key, an attacker can't find two buyer ids that share a cell. It works on 32-bit words, the only fast integers of JavaScript.
 *
 * Source: Aumasson, Bernstein, SipHash: a fast short-input PRF, 2012; HalfSipHash in the authors' reference,
 * https://github.com/veorq/SipHash.
 */
export const HASH_KEY_BYTES = 8;

export class KeyedHash {
  /** The result of the last `of`, two signed 32-bit words. They are fields so that a hash does not cost an object. */
  low = 0;
  high = 0;
  readonly #k0: number;
  readonly #k1: number;
  #v0 = 0;
  #v1 = 0;
  #v2 = 0;
  #v3 = 0;

  /** @param key 8 bytes */
  constructor(key: Uint8Array) {
    const words = new DataView(key.buffer, key.byteOffset, HASH_KEY_BYTES);
    this.#k0 = words.getInt32(0, true);
    this.#k1 = words.getInt32(4, true);
  }

  /** @param text characters below 256, each a byte */
  of(text: string): void {
    this.#v0 = this.#k0;
    this.#v1 = this.#k1 ^ 0xee;
    this.#v2 = 0x6c796765 ^ this.#k0;
    this.#v3 = 0x74656462 ^ this.#k1;
    const whole = text.length & ~3;
    for (let at = 0; at < whole; at += 4) {
      this.#absorb(
        text.charCodeAt(at) |
          (text.charCodeAt(at + 1) << 8) |
          (text.charCodeAt(at + 2) << 16) |
          (text.charCodeAt(at + 3) << 24),
      );
    }
    let last = text.length << 24;
    for (let at = whole; at < text.length; at++) last |= text.charCodeAt(at) << ((at & 3) * 8);
    this.#absorb(last);
    this.#v2 ^= 0xee;
    this.#rounds(4);
    this.low = this.#v1 ^ this.#v3;
    this.#v1 ^= 0xdd;
    this.#rounds(4);
    this.high = this.#v1 ^ this.#v3;
  }

  #absorb(word: number): void {
    this.#v3 ^= word;
    this.#rounds(2);
    this.#v0 ^= word;
  }

  #rounds(count: number): void {
    let [v0, v1, v2, v3] = [this.#v0, this.#v1, this.#v2, this.#v3];
    for (let round = 0; round < count; round++) {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    this.#v0 = v0;
    this.#v1 = v1;
    this.#v2 = v2;
    this.#v3 = v3;
  }
}
