/** How many requests one buyer, or one address, may send. */
export interface RatePolicy {
  /** The average rate is `requests` in `seconds`: 1 to 1,000,000 in 1 to 86,400 s. */
  readonly requests: number;
  readonly seconds: number;
  /** Requests at once after a pause, 1 to 1,000,000. */
  readonly burst: number;
}

const MOST_REQUESTS = 1_000_000;
const MOST_SECONDS = 86_400;

export const RATE_POLICY_FORM =
  `must be requests/seconds or requests/seconds/burst, such as 10/60 or 5/1/20: ` +
  `whole numbers from 1 to ${MOST_REQUESTS}, and to ${MOST_SECONDS} for the seconds`;

/** @returns `undefined` if the text is not valid. Without a burst, all requests of one period may come at once */
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

/** An IPv6 network of 48 bits may send as many requests as this many networks of 64 bits. */
export const SITE_SHARE = 64;

/** A limiter counts a burst in fractions of a request, in 31 bits. */
const MOST_SITE_BURST = 8_000_000;

/** Turns the policy for an address into that for a network of 48 bits. */
export function sitePolicy({ requests, seconds, burst }: RatePolicy): RatePolicy {
  return { requests: requests * SITE_SHARE, seconds, burst: Math.min(burst * SITE_SHARE, MOST_SITE_BURST) };
}

/** The time between requests that come evenly at the policy's rate, in milliseconds. */
export function intervalMs({ requests, seconds }: RatePolicy): number {
  return (seconds * 1_000) / requests;
}
