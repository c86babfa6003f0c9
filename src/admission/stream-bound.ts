/**
 * Limits how many streams one address has open at a time, in one worker. A stream stays open, so the limit of new connections
 * (connection-bound.ts) does not bound it: an address that opens a stream now and then would hold all of them in the end.
 *
 * An address may have as many as it may open connections at once, and a network of 48 bits 64 times as many.
 */
import { addressKey, siteKey } from './addresses.ts';
import { type RatePolicy, sitePolicy } from './rate-policy.ts';

export interface StreamBoundParts {
  /** The limit of new connections. */
  readonly policy: RatePolicy;
  /** Addresses that are not limited, such as those of proxies. */
  readonly isExempt: (address: Uint8Array) => boolean;
}

export class StreamBound {
  readonly #most: { readonly address: number; readonly site: number };
  readonly #isExempt: StreamBoundParts['isExempt'];
  /** Streams by address, and by network of 48 bits. The keys differ in length. */
  readonly #open = new Map<string, number>();

  constructor({ policy, isExempt }: StreamBoundParts) {
    this.#most = { address: policy.burst, site: sitePolicy(policy).burst };
    this.#isExempt = isExempt;
  }

  /** Whether this address may open one more. @param address normalised, as for the other calls */
  admits(address: Uint8Array): boolean {
    return this.#countsOf(address).every(({ key, most }) => (this.#open.get(key) ?? 0) < most);
  }

  opened(address: Uint8Array): void {
    for (const { key } of this.#countsOf(address)) this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
  }

  closed(address: Uint8Array): void {
    for (const { key } of this.#countsOf(address)) {
      const left = (this.#open.get(key) ?? 0) - 1;
      if (left > 0) this.#open.set(key, left);
      else this.#open.delete(key);
    }
  }

  #countsOf(address: Uint8Array): { readonly key: string; readonly most: number }[] {
    if (this.#isExempt(address)) return [];
    const ofAddress = { key: addressKey(address), most: this.#most.address };
    const site = siteKey(address);
    return site === undefined ? [ofAddress] : [ofAddress, { key: site, most: this.#most.site }];
  }
}
