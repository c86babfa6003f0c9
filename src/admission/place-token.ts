/**
 * The place token: what a buyer is told of its place in a queue, in a form that only the shop can have written. A node that is shown
 * it knows number and quantity without reading Postgres. It proves nothing about who shows it: the buyer is authenticated as always.
 *
 *   p1.number.quantity.mac     mac = HMAC-SHA-256(key, "place 1 number quantity saleId buyerId"), base64url
 *
 * It never expires: what has become of the place, Postgres knows. The texts that purchase tokens are signed over begin with a
 * digit, so neither can be passed off as the other.
 */
import type { TokenHolder } from './purchase-token.ts';
import { SIGNATURE_FORM, Signer, type SigningKeys } from './signer.ts';

const FORM = new RegExp(`^p1\\.([1-9]\\d{0,14})\\.([1-9]\\d{0,8})\\.(${SIGNATURE_FORM})$`);

export interface TokenPlace {
  readonly number: number;
  readonly quantity: number;
}

export class PlaceTokens {
  readonly #signer: Signer;

  constructor(keys: SigningKeys) {
    this.#signer = new Signer(keys);
  }

  issue(holder: TokenHolder, place: TokenPlace): string {
    const mac = this.#signer.sign(textOf(holder, place));
    return `p1.${place.number}.${place.quantity}.${mac}`;
  }

  /**
   * @returns also the token that its holder should have from now on: a new one, if the keys are being changed.
   * `undefined` if the shop did not issue it for this buyer and sale, or has changed its keys since
   */
  read(token: string, holder: TokenHolder): (TokenPlace & { readonly token: string }) | undefined {
    const parts = FORM.exec(token);
    if (!parts) return undefined;
    const place = { number: Number(parts[1]), quantity: Number(parts[2]) };
    // Buyers who wait show their token again and again: one that is current is not signed anew.
    const age = this.#signer.age(textOf(holder, place), parts[3]!);
    return age && { ...place, token: age === 'current' ? token : this.issue(holder, place) };
  }
}

function textOf({ saleId, buyerId }: TokenHolder, { number, quantity }: TokenPlace): string {
  return `place 1 ${number} ${quantity} ${saleId} ${buyerId}`;
}
