/** How much one buyer, or one address, may ask. */
export interface RatePolicy {
  /** In so many seconds, on average: 1 to 1,000,000 requests in 1 to 86,400 s. */
  readonly requests: number;
  readonly seconds: number;
  /** Requests at once after a rest, 1 to 1,000,000. */
  readonly burst: number;
}

const MOST_REQUESTS = 1_000_000;
const MOST_SECONDS = 86_400;

export const RATE_POLICY_FORM =
  `must be requests/seconds or requests/seconds/burst, such as 10/60 or 5/1/20: ` +
  `whole numbers from 1 to ${MOST_REQUESTS}, and to ${MOST_SECONDS} for the seconds`;

/** @returns `undefined` if the text is none. Without a burst all requests of one period may come at once */
export function parseRatePolicy(text: string): RatePolicy | undefined {
  const parts = /^(\d{1,7})\/(\d{1,5})(?:\/(\d{1,7}))?$/.exec(text);
  if (!parts) return undefined;
  const [requests, seconds] = [Number(parts[1]), Number(parts[2])];
  const burst = parts[3] === undefined ? requests : Number(parts[3]);
  const isWithin = (value: number, most: number) => value >= 1 && value <= most;
  return isWithin(requests, MOST_REQUESTS) &&
    isWithin(seconds, MOST_SECONDS) &&
    isWithin(burst, MOST_REQUESTS)
    ? { requests, seconds, burst }
    : undefined;
}

/** IPv6: what a network of 48 bits may ask, in those of 64 bits that it holds. */
export const SITE_SHARE = 64;

/** A limiter counts a burst in fractions of a request, in 31 bits. */
const MOST_SITE_BURST = 8_000_000;

/** The policy of a network of 48 bits, of a policy for addresses. */
export function sitePolicy({ requests, seconds, burst }: RatePolicy): RatePolicy {
  return { requests: requests * SITE_SHARE, seconds, burst: Math.min(burst * SITE_SHARE, MOST_SITE_BURST) };
}

/** The time that one request takes up, in milliseconds. */
export function intervalMs({ requests, seconds }: RatePolicy): number {
  return (seconds * 1_000) / requests;
}
