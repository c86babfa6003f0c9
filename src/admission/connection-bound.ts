/**
 * Limits how fast one address may open connections. The HTTP servers don't report whose connection was closed, so open
 * connections can't be counted. But they close a silent connection after some ten seconds. So the silent connections of one
 * address are at most the burst plus those that it may open in ten seconds.
 *
 *   up to the burst   every request is served
 *   above it          the next request from that address is answered `busy`, and its connection is closed
 *   further above it  a new connection is closed at once, without an answer (`answeredAboveShare`)
 *
 * http/server/connections.ts limits all connections of a port in the same way, and gives the reasons. A connection that this
 * limit closes is not counted any more.
 */
import { monotonicMs } from '../lib/monotonic.ts';
import { addressKey, siteKey } from './addresses.ts';
import { RateLimiter, type SharedRates } from './rate-limiter.ts';
import { intervalMs, type RatePolicy, sitePolicy } from './rate-policy.ts';

export interface ConnectionBoundParts {
  readonly policy: RatePolicy;
  /** Counts that the workers of a node share: of addresses, and of networks of 48 bits. */
  readonly addresses: SharedRates;
  readonly sites: SharedRates;
  /** Addresses that are not limited, such as those of proxies, which pass on the requests of many clients. */
  readonly isExempt: (address: Uint8Array) => boolean;
  /** As a share of the burst: how many connections above it still get an answer to their next request. */
  readonly answeredAboveShare: number;
}

/** One of the two counts that a connection adds to. */
interface Count {
  readonly limiter: RateLimiter;
  readonly policy: RatePolicy;
  readonly key: (address: Uint8Array) => string | undefined;
}

export class ConnectionBound {
  readonly #counts: readonly Count[];
  readonly isExempt: (address: Uint8Array) => boolean;
  readonly #now: () => number;
  /** Until this time an address may be above its burst, as far as this thread knows. Afterwards requests need no check. */
  #aboveUntilMs = 0;

  /** @param now milliseconds, by a clock that all threads share */
  constructor(parts: ConnectionBoundParts, now: () => number = monotonicMs) {
    const { policy, addresses, sites, isExempt, answeredAboveShare } = parts;
    const count = (policy: RatePolicy, shared: SharedRates, key: Count['key']): Count => {
      const burst = policy.burst + Math.ceil(policy.burst * answeredAboveShare);
      return { policy, key, limiter: new RateLimiter({ ...policy, burst }, shared, now) };
    };
    this.#counts = [count(policy, addresses, addressKey), count(sitePolicy(policy), sites, siteKey)];
    this.isExempt = isExempt;
    this.#now = now;
  }

  /** @param address of a new connection, normalised @returns whether it may stay */
  opened(address: Uint8Array): boolean {
    if (this.isExempt(address)) return true;
    const counts = this.#countsOf(address);
    for (const [i, { limiter, policy, name }] of counts.entries()) {
      if (limiter.admit(name) > 0) {
        for (const charged of counts.slice(0, i)) charged.limiter.giveBack(charged.name);
        return false;
      }
      const above = limiter.counting(name) - policy.burst;
      if (above > 0)
        this.#aboveUntilMs = Math.max(this.#aboveUntilMs, this.#now() + above * intervalMs(policy));
    }
    return true;
  }

  /** Whether an address may be above its burst. `false` costs next to nothing. */
  get isAnyAbove(): boolean {
    return this.#aboveUntilMs !== 0 && this.#now() < this.#aboveUntilMs;
  }

  /** @returns whether this address has too many connections. If so, the caller must close one, which no longer counts */
  shed(address: Uint8Array): boolean {
    if (this.isExempt(address)) return false;
    const counts = this.#countsOf(address);
    if (!counts.some(({ limiter, policy, name }) => limiter.counting(name) > policy.burst)) return false;
    for (const { limiter, name } of counts) limiter.giveBack(name);
    return true;
  }

  /** The counts that a connection from this address adds to, and its key in each. */
  #countsOf(address: Uint8Array) {
    return this.#counts.flatMap(({ limiter, policy, key }) => {
      const name = key(address);
      return name === undefined ? [] : [{ limiter, policy, name }];
    });
  }
}
