/**
 * How many connections one address may open. Nobody tells whose connection was closed: what counts is how fast new ones
 * come, and those who are silent are closed by the listener after some ten seconds. So an address holds, of silent ones,
 * the burst and what it may open in that time.
 *
 *   up to the burst ──> served ──above──> the next request from that address is answered `busy`, and its connection closed
 *                                 ──above by a share──> a new connection is closed at once, without an answer
 *
 * As with all connections of a port together (http/server/connections.ts), and for the same reasons. Each connection that is closed
 * counts no more.
 */
import { monotonicMs } from '../lib/monotonic.ts';
import { addressKey, siteKey } from './addresses.ts';
import { RateLimiter, type SharedRates } from './rate-limiter.ts';
import { intervalMs, type RatePolicy, sitePolicy } from './rate-policy.ts';

export interface ConnectionBoundParts {
  readonly policy: RatePolicy;
  /** What the workers of a node share: for addresses, and for networks of 48 bits. */
  readonly addresses: SharedRates;
  readonly sites: SharedRates;
  /** Whose connections are not counted: all that a proxy passes on comes from its address. */
  readonly isExempt: (address: Uint8Array) => boolean;
  /** Of the burst: connections above it whose next request is still answered. */
  readonly answeredAboveShare: number;
}

/** One of the two counts that a connection is part of. */
interface Count {
  readonly limiter: RateLimiter;
  readonly policy: RatePolicy;
  readonly key: (address: Uint8Array) => string | undefined;
}

export class ConnectionBound {
  readonly #counts: readonly Count[];
  readonly isExempt: (address: Uint8Array) => boolean;
  readonly #now: () => number;
  /** Until when an address may be above, as far as this thread has seen: before, requests need not be looked at. */
  #aboveUntilMs = 0;

  /** @param now milliseconds, on a clock that all threads share */
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

  /** False costs next to nothing, and means that no address is above. */
  get isAnyAbove(): boolean {
    return this.#aboveUntilMs !== 0 && this.#now() < this.#aboveUntilMs;
  }

  /** @returns whether this address has too many: a connection of it is to be closed, and counts no more */
  shed(address: Uint8Array): boolean {
    if (this.isExempt(address)) return false;
    const counts = this.#countsOf(address);
    if (!counts.some(({ limiter, policy, name }) => limiter.counting(name) > policy.burst)) return false;
    for (const { limiter, name } of counts) limiter.giveBack(name);
    return true;
  }

  /** Those that a connection from there is part of, and its name in each. */
  #countsOf(address: Uint8Array) {
    return this.#counts.flatMap(({ limiter, policy, key }) => {
      const name = key(address);
      return name === undefined ? [] : [{ limiter, policy, name }];
    });
  }
}
