/** Rate limits over HTTP: which key a request counts under, and the answer above the limit. */

import { addressKey, siteKey } from '../../admission/addresses.ts';
import type { RateLimiter } from '../../admission/rate-limiter.ts';
import { intervalMs, type RatePolicy } from '../../admission/rate-policy.ts';
import { counted } from '../../lib/counted.ts';
import type { Authenticate, Identity } from '../identity/identity.ts';
import type { AddressOf } from '../server/client-address.ts';
import { problem } from '../server/replies/problem.ts';
import type { CountedReply } from '../server/replies/reply.ts';
import type { Gate } from '../server/router.ts';

export type LimitKind = 'address' | 'buyer';

/** A limiter and the policy that it enforces. */
export interface Limit {
  readonly limiter: RateLimiter;
  readonly policy: RatePolicy;
}

export interface RateLimitParts {
  /** `undefined`: no limit. */
  readonly address: Limit | undefined;
  /** Limits IPv6 networks of 48 bits, in addition to the limit of each address. */
  readonly site: Limit | undefined;
  readonly buyer: Limit | undefined;
  readonly addressOf: AddressOf;
}

export interface RateLimitCounts {
  readonly refused: Readonly<Record<LimitKind, number>>;
  /** Buyers and addresses that were removed from the full table while their requests still counted. */
  readonly evicted: Readonly<Record<LimitKind, number>>;
}

export class RateLimits {
  /** Refuses addresses above their limit, before any other work is done for the request. `undefined`: no such limit. */
  readonly gate: Gate | undefined;
  readonly #parts: RateLimitParts;
  readonly #refused = { address: 0, buyer: 0 };

  constructor(parts: RateLimitParts) {
    this.#parts = parts;
    this.gate = parts.address && this.#addressGate(parts.address);
  }

  /** Authenticates as `authenticate` does, and refuses buyers above their limit. */
  limitBuyers(authenticate: Authenticate): Authenticate {
    const { buyer } = this.#parts;
    if (!buyer) return authenticate;
    const refusals = new Refusals('buyer', buyer.policy);
    const limited = (identity: Identity): Identity => {
      if (!('buyerId' in identity)) return identity;
      const waitMs = buyer.limiter.admit(identity.buyerId);
      if (waitMs === 0) return identity;
      this.#refused.buyer++;
      return { limited: refusals.after(waitMs) };
    };
    return (request) => {
      const identity = authenticate(request);
      return identity instanceof Promise ? identity.then(limited) : limited(identity);
    };
  }

  counts(): RateLimitCounts {
    const { address, site, buyer } = this.#parts;
    const evicted = (limit: Limit | undefined) => limit?.limiter.evictions ?? 0;
    return {
      refused: { ...this.#refused },
      evicted: { address: evicted(address) + evicted(site), buyer: evicted(buyer) },
    };
  }

  #addressGate({ limiter, policy }: Limit): Gate {
    const { addressOf, site } = this.#parts;
    const refusals = new Refusals('address', policy);
    const ofSite = site && new Refusals('address', site.policy, 'one network of 48 bits');
    return (exchange, request) => {
      const address = addressOf(exchange, request);
      const waitMs = limiter.admit(addressKey(address));
      if (waitMs > 0) return this.#refusedAddress(refusals, waitMs);
      const siteName = ofSite && siteKey(address);
      const siteWaitMs = siteName === undefined ? 0 : site!.limiter.admit(siteName);
      return siteWaitMs > 0 ? this.#refusedAddress(ofSite!, siteWaitMs) : undefined;
    };
  }

  #refusedAddress(refusals: Refusals, waitMs: number): CountedReply {
    this.#refused.address++;
    return refusals.after(waitMs);
  }
}

/** Answers for waits up to this are built once and reused, so that a flood of refusals costs little. */
const CACHED_WAIT_S = 60;

/**
 * `429` with the header fields of the IETF's draft-ietf-httpapi-ratelimit-headers-11. In `RateLimit-Policy`, a quota of `q`
 * requests fills up again in `w` seconds. In `RateLimit`, `r` requests are left for the next `t` seconds.
 */
class Refusals {
  readonly #kind: LimitKind;
  readonly #policy: RatePolicy;
  readonly #who: string;
  readonly #replies: CountedReply[] = [];

  constructor(kind: LimitKind, policy: RatePolicy, who = kind === 'buyer' ? 'one buyer' : 'one address') {
    this.#kind = kind;
    this.#policy = policy;
    this.#who = who;
  }

  after(waitMs: number): CountedReply {
    const waitS = Math.ceil(waitMs / 1_000);
    const cached = this.#replies[waitS];
    if (cached) return cached;
    const reply = this.#reply(waitS);
    if (waitS <= CACHED_WAIT_S) this.#replies[waitS] = reply;
    return reply;
  }

  #reply(waitS: number): CountedReply {
    const { requests, seconds, burst } = this.#policy;
    const windowS = Math.ceil((burst * intervalMs(this.#policy)) / 1_000);
    const detail =
      `This node allows ${this.#who} ${counted(requests, 'request')} in ${seconds} s, and ${burst} at once. ` +
      'The request changed nothing. Send it again after the seconds in Retry-After.';
    return problem(
      'rate_limited',
      { detail, limitOf: this.#kind },
      {
        'retry-after': String(waitS),
        'ratelimit-policy': `"${this.#kind}";q=${burst};w=${windowS}`,
        ratelimit: `"${this.#kind}";r=0;t=${waitS}`,
      },
    );
  }
}
