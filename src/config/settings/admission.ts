/** Settings of admission: rate limits, proxies, purchase tokens, challenges. */
import { parseTrustedProxies, TRUSTED_PROXIES_FORM } from '../../admission/addresses.ts';
import type { ForwardedHeader } from '../../admission/forwarded.ts';
import { MAX_WORK_BITS } from '../../admission/proof-of-work.ts';
import { parseRatePolicy, RATE_POLICY_FORM } from '../../admission/rate-policy.ts';
import { oneOf, readable, secret, text, whole } from '../values/schemas.ts';
import type { Secret } from '../values/secret.ts';
import type { SettingTable } from './setting.ts';

export interface AdmissionSettings {
  readonly rateLimitBuyer: string | undefined;
  readonly rateLimitAddress: string | undefined;
  readonly rateLimitConnections: string | undefined;
  readonly rateLimitKeys: number;
  readonly trustedProxies: string | undefined;
  readonly forwardedHeader: ForwardedHeader;
  readonly purchaseTokenTtlSeconds: number;
  readonly purchaseTokenSecret: Secret | undefined;
  readonly purchaseTokenOtherSecret: Secret | undefined;
  readonly challenge: string | undefined;
  readonly challengeBits: number;
}

export const admissionSettings: SettingTable<AdmissionSettings> = {
  rateLimitBuyer: {
    env: 'RATE_LIMIT_BUYER',
    flag: '--rate-limit-buyer <n/s>',
    schema: readable(parseRatePolicy, RATE_POLICY_FORM),
    fallback: undefined,
    fallbackText: 'no limit',
    description:
      'Requests that one buyer may make, as `requests/seconds` or `requests/seconds/burst`: `10/60`, `5/1/20`. More are answered `rate_limited`. Each node counts by itself.',
    shared: 'value',
  },
  rateLimitAddress: {
    env: 'RATE_LIMIT_ADDRESS',
    flag: '--rate-limit-address <n/s>',
    schema: readable(parseRatePolicy, RATE_POLICY_FORM),
    fallback: undefined,
    fallbackText: 'no limit',
    description:
      'The same for one address, checked before anything else. IPv6 addresses are counted by networks of 64 bits; a network of 48 bits may make 64 times as many. Behind a gateway also set `TRUSTED_PROXIES`, or all buyers share the gateway’s address.',
    shared: 'value',
  },
  rateLimitConnections: {
    env: 'RATE_LIMIT_CONNECTIONS',
    flag: '--rate-limit-connections <n/s>',
    schema: readable(parseRatePolicy, RATE_POLICY_FORM),
    fallback: undefined,
    fallbackText: 'no limit',
    description:
      'Connections that one address may open, as `connections/seconds` or `connections/seconds/burst`: `20/10/100`. More are refused in the same way as those above `MAX_CONNECTIONS`. The burst also limits how many listeners one address has at each worker. The loopback and `TRUSTED_PROXIES` have no limit; with this setting, `TRUSTED_PROXIES` must be networks.',
    shared: 'value',
  },
  rateLimitKeys: {
    env: 'RATE_LIMIT_KEYS',
    flag: '--rate-limit-keys <n>',
    schema: whole(1_024, 67_108_864),
    fallback: 1_048_576,
    description:
      'How many entries each table of a rate limit has: one table for buyers, one for each limit of addresses. Rounded up to a power of two; an entry takes 8 bytes. In a full table, a new entry replaces one whose next request is due soon.',
  },
  trustedProxies: {
    env: 'TRUSTED_PROXIES',
    flag: '--trusted-proxies <list>',
    schema: readable(parseTrustedProxies, TRUSTED_PROXIES_FORM),
    fallback: undefined,
    fallbackText: 'none',
    description:
      'Proxies in front of this node whose `FORWARDED_HEADER` is believed: how many, or their addresses and networks (`10.0.0.0/8,192.0.2.1`), none larger than `/7`.',
  },
  forwardedHeader: {
    env: 'FORWARDED_HEADER',
    flag: '--forwarded-header <name>',
    schema: oneOf('x-forwarded-for', 'forwarded'),
    fallback: 'x-forwarded-for',
    description:
      'Header in which the trusted proxies name the client’s address. The other header is ignored.',
  },
  purchaseTokenTtlSeconds: {
    env: 'PURCHASE_TOKEN_TTL_SECONDS',
    flag: '--purchase-token-ttl-seconds <n>',
    schema: whole(1, 86_400),
    fallback: 300,
    description: 'How long a purchase token is valid.',
    shared: 'value',
  },
  purchaseTokenSecret: {
    env: 'PURCHASE_TOKEN_SECRET',
    schema: secret(32),
    fallback: undefined,
    fallbackText: 'a random one, kept in Postgres',
    description: 'Key of the purchase tokens, at least 32 characters. The same in all nodes.',
    shared: 'value',
  },
  purchaseTokenOtherSecret: {
    env: 'PURCHASE_TOKEN_OTHER_SECRET',
    schema: secret(32),
    fallback: undefined,
    description:
      'A second key whose tokens are accepted too. Set it while you change the key: first to the next key, then to the previous one.',
    shared: 'value',
  },
  challenge: {
    env: 'CHALLENGE',
    flag: '--challenge <pow|file>',
    schema: text,
    fallback: undefined,
    fallbackText: 'none',
    description:
      'What a buyer has to solve to get a purchase token: `pow`, a proof of work; or a JavaScript module with the exports `issue` and `verify`, for example for a captcha.',
    shared: 'file',
  },
  challengeBits: {
    env: 'CHALLENGE_BITS',
    flag: '--challenge-bits <n>',
    schema: whole(1, MAX_WORK_BITS),
    fallback: 18,
    description: 'Difficulty of `CHALLENGE=pow`: 2 to the power of this number of hashes, on average.',
    shared: 'value',
  },
};
