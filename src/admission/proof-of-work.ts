/**
 * The built-in challenge: the client finds a number whose hash begins with enough zero bits (as in Hashcash, Back 2002). One
 * token costs a person's device a moment; a thousand tokens cost a program a thousand moments.
 *
 *   seed     = version.expiry.nonce.mac     mac = HMAC-SHA-256(key, "version expiry nonce bits saleId buyerId"), base64url
 *   solution = any decimal number for which SHA-256(seed "." solution) begins with `bits` zero bits
 *
 * Nothing is stored: the mac proves that this shop issued the seed, for this buyer, sale and difficulty. A solution can be
 * used again until it expires. That only yields further tokens for the same buyer in the same sale, and they allow no more
 * than the first.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Challenge, ChallengeContext } from './challenge.ts';

const VERSION = 1;
const NONCE_BYTES = 12;
/** Time to solve a challenge. A slow phone needs seconds. */
const SOLVE_WITHIN_S = 300;
/** Begins with VERSION. */
const SEED = /^1\.(\d{1,10})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{43})$/;
const SOLUTION = /^\d{1,20}$/;

export const MAX_WORK_BITS = 30;

type Holder = Pick<ChallengeContext, 'saleId' | 'buyerId'>;

export class ProofOfWork implements Challenge {
  readonly #keys: readonly Uint8Array[];
  readonly #bits: number;
  readonly #now: () => number;

  /**
   * @param keys the first one signs, all are accepted: while keys are changed, another node may have issued the challenge
   * @param bits a solution takes 2^bits hashes on average
   * @param now milliseconds since the Unix epoch
   */
  constructor(keys: readonly Uint8Array[], bits: number, now: () => number = Date.now) {
    this.#keys = keys;
    this.#bits = bits;
    this.#now = now;
  }

  issue(holder: Holder) {
    const expiry = Math.floor(this.#now() / 1_000) + SOLVE_WITHIN_S;
    const nonce = randomBytes(NONCE_BYTES).toString('base64url');
    return {
      type: 'proof-of-work',
      algorithm: 'SHA-256',
      bits: this.#bits,
      seed: `${VERSION}.${expiry}.${nonce}.${this.#mac(this.#keys[0]!, holder, expiry, nonce)}`,
      expiresAt: new Date(expiry * 1_000).toISOString(),
    };
  }

  verify(answer: unknown, holder: Holder): boolean {
    const { seed, solution } = (typeof answer === 'object' && answer !== null ? answer : {}) as {
      seed?: unknown;
      solution?: unknown;
    };
    if (typeof seed !== 'string' || typeof solution !== 'string' || !SOLUTION.test(solution)) return false;
    const parts = SEED.exec(seed);
    if (!parts || this.#now() >= Number(parts[1]) * 1_000) return false;
    const mac = Buffer.from(parts[3]!);
    const isOurs = this.#keys.some((key) =>
      timingSafeEqual(mac, Buffer.from(this.#mac(key, holder, Number(parts[1]), parts[2]!))),
    );
    return isOurs && isSolved(seed, solution, this.#bits);
  }

  #mac(key: Uint8Array, { saleId, buyerId }: Holder, expiry: number, nonce: string): string {
    return createHmac('sha256', key)
      .update(`${VERSION} ${expiry} ${nonce} ${this.#bits} ${saleId} ${buyerId}`)
      .digest('base64url');
  }
}

function isSolved(seed: string, solution: string, bits: number): boolean {
  const hash = createHash('sha256').update(`${seed}.${solution}`).digest();
  return hash.readUInt32BE(0) >>> (32 - bits) === 0;
}
