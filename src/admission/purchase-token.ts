/**
 * The purchase token: a permission to buy, for one buyer in one sale, for a short time and one generation of the sale. No
 * buyer can have one before the sale's window opens, so until then a program can't prepare purchases to be ahead of everybody
 * else. Any node that has the key checks a token without I/O.
 *
 *   version.generation.expiry.mac     expiry: seconds since the Unix epoch
 *   mac = HMAC-SHA-256(key, "version generation expiry saleId buyerId"), base64url
 *
 * Ids have no spaces, so different values always give different texts to sign. The token does not contain sale and buyer: the
 * request names both.
 */
import { SIGNATURE_FORM, Signer, type SigningKeys } from './signer.ts';

const VERSION = 1;
const FORM = new RegExp(`^1\\.(\\d{1,10})\\.(\\d{1,10})\\.(${SIGNATURE_FORM})$`);

/**
 * - `genuine`: this shop issued it for this buyer and sale, and it is valid
 * - `expired`: as `genuine`, but its time is over
 * - `generation`: as `genuine`, but the sale has been rebuilt since
 * - `alien`: not issued by this shop, or for another buyer or sale
 */
export type TokenVerdict = 'genuine' | 'expired' | 'generation' | 'alien';

export interface TokenHolder {
  readonly saleId: string;
  readonly buyerId: string;
}

export interface PurchaseTokenSettings extends SigningKeys {
  readonly ttlSeconds: number;
}

export class PurchaseTokens {
  readonly #signer: Signer;
  readonly #ttlSeconds: number;
  readonly #now: () => number;

  /** @param now milliseconds since the Unix epoch */
  constructor(settings: PurchaseTokenSettings, now: () => number = Date.now) {
    this.#signer = new Signer(settings, now);
    this.#ttlSeconds = settings.ttlSeconds;
    this.#now = now;
  }

  issue(holder: TokenHolder, generation: number): { readonly token: string; readonly expiresAtMs: number } {
    const expiry = Math.floor(this.#now() / 1_000) + this.#ttlSeconds;
    const mac = this.#signer.sign(textOf(holder, generation, expiry));
    return { token: `${VERSION}.${generation}.${expiry}.${mac}`, expiresAtMs: expiry * 1_000 };
  }

  /**
   * @param generation of the sale, as this node knows it. A token of a later generation is valid: another node, which knew of
   * the rebuild first, has issued it
   */
  check(token: string, holder: TokenHolder, generation: number): TokenVerdict {
    const parts = FORM.exec(token);
    if (!parts) return 'alien';
    const [made, expiry] = [Number(parts[1]), Number(parts[2])];
    if (!this.#signer.hasSigned(textOf(holder, made, expiry), parts[3]!)) return 'alien';
    if (this.#now() >= expiry * 1_000) return 'expired';
    return made < generation ? 'generation' : 'genuine';
  }
}

function textOf({ saleId, buyerId }: TokenHolder, generation: number, expiry: number): string {
  return `${VERSION} ${generation} ${expiry} ${saleId} ${buyerId}`;
}
