/**
 * The offer token: the permission to accept one offer of a queue, for one buyer. A node that is shown it knows the order without
 * reading Postgres, and made-up tokens cost no I/O.
 *
 *   o1.orderId.quantity.mac     mac = HMAC-SHA-256(key, "offer 1 orderId quantity saleId buyerId"), base64url
 *
 * It has no expiry: whether the offer can still be accepted, Postgres decides. The texts that purchase tokens and place tokens are
 * signed over begin otherwise, so none can be passed off as another.
 */
import type { TokenHolder } from './purchase-token.ts';
import { SIGNATURE_FORM, Signer, type SigningKeys } from './signer.ts';

const BEGINNING = 'o1.';
const FORM = new RegExp(`^o1\\.([1-9]\\d{0,18})\\.([1-9]\\d{0,8})\\.(${SIGNATURE_FORM})$`);

export interface TokenOffer {
  readonly orderId: string;
  /** Units that are offered: all of them are accepted, or none. */
  readonly quantity: number;
}

/** Whether the text has the form of an offer token, and not that of a purchase token. */
export function isOfferToken(token: string): boolean {
  return token.startsWith(BEGINNING);
}

export class OfferTokens {
  readonly #signer: Signer;

  constructor(keys: SigningKeys) {
    this.#signer = new Signer(keys);
  }

  issue(holder: TokenHolder, offer: TokenOffer): string {
    const mac = this.#signer.sign(textOf(holder, offer));
    return `${BEGINNING}${offer.orderId}.${offer.quantity}.${mac}`;
  }

  /** @returns `undefined` if the shop did not issue it for this buyer and sale, or has changed its keys since */
  read(token: string, holder: TokenHolder): TokenOffer | undefined {
    const parts = FORM.exec(token);
    if (!parts) return undefined;
    const offer = { orderId: parts[1]!, quantity: Number(parts[2]) };
    return this.#signer.hasSigned(textOf(holder, offer), parts[3]!) ? offer : undefined;
  }
}

function textOf({ saleId, buyerId }: TokenHolder, { orderId, quantity }: TokenOffer): string {
  return `offer 1 ${orderId} ${quantity} ${saleId} ${buyerId}`;
}
