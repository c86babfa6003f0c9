/** Signs texts with keys that all nodes of a shop have, so that each node can check what another has signed, without I/O. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

export interface SigningKeys {
  /** The first one signs, all are accepted: while keys are changed there are two. */
  readonly keys: readonly Uint8Array[];
  /** A former key. What it has signed is accepted until `untilMs`, in milliseconds since the Unix epoch. */
  readonly outgoing?: { readonly key: Uint8Array; readonly untilMs: number } | undefined;
}

/** The form of every signature, in the regular expressions of tokens. */
export const SIGNATURE_FORM = '[A-Za-z0-9_-]{43}';

export class Signer {
  readonly #keys: readonly KeyObject[];
  readonly #outgoing: { readonly key: KeyObject; readonly untilMs: number } | undefined;
  readonly #now: () => number;

  /** @param now milliseconds since the Unix epoch */
  constructor({ keys, outgoing }: SigningKeys, now: () => number = Date.now) {
    this.#keys = keys.map((key) => createSecretKey(key));
    this.#outgoing = outgoing && { ...outgoing, key: createSecretKey(outgoing.key) };
    this.#now = now;
  }

  /** @returns HMAC-SHA-256 in base64url */
  sign(text: string): string {
    return macOf(this.#keys[0]!, text);
  }

  /** @param mac of the form SIGNATURE_FORM */
  hasSigned(text: string, mac: string): boolean {
    return this.age(text, mac) !== undefined;
  }

  /** @param mac of the form SIGNATURE_FORM @returns whether the key that signs now has signed it, or an older one; or none */
  age(text: string, mac: string): 'current' | 'older' | undefined {
    const given = Buffer.from(mac);
    const isBy = (key: KeyObject) => timingSafeEqual(given, Buffer.from(macOf(key, text)));
    const found = this.#keys.findIndex(isBy);
    if (found >= 0) return found === 0 ? 'current' : 'older';
    const outgoing = this.#outgoing;
    return outgoing && this.#now() < outgoing.untilMs && isBy(outgoing.key) ? 'older' : undefined;
  }
}

function macOf(key: KeyObject, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}
