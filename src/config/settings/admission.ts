/** Who is let in to buy: rate limits, proxies, purchase tokens, challenges. */
import {
  type ForwardedHeader,
  parseTrustedProxies,
  TRUSTED_PROXIES_FORM,
} from '../../admission/addresses.ts';
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
      'Requests of one buyer, as `requests/seconds` or `requests/seconds/burst`: `10/60`, `5/1/20`. More are answered `rate_limited`. Each node counts by itself.',
    shared: 'value',
  },
  rateLimitAddress: {
    env: 'RATE_LIMIT_ADDRESS',
    flag: '--rate-limit-address <n/s>',
    schema: readable(parseRatePolicy, RATE_POLICY_FORM),
    fallback: undefined,
    fallbackText: 'no limit',
    description:
      'The same for one address (IPv6: one network of 64 bits, and 64 times as much for one of 48), looked at before anything else. Behind a gateway it needs `TRUSTED_PROXIES`, or all buyers share the gateway’s.',
    shared: 'value',
  },
  rateLimitConnections: {
    env: 'RATE_LIMIT_CONNECTIONS',
    flag: '--rate-limit-connections <n/s>',
    schema: readable(parseRatePolicy, RATE_POLICY_FORM),
    fallback: undefined,
    fallbackText: 'no limit',
    description:
      'Connections that one address may open, such as `20/10/100`; more are refused as those beyond `MAX_CONNECTIONS` are. Not those of the loopback and of `TRUSTED_PROXIES`, which must be networks then.',
    shared: 'value',
  },
  rateLimitKeys: {
    env: 'RATE_LIMIT_KEYS',
    flag: '--rate-limit-keys <n>',
    schema: whole(1_024, 67_108_864),
    fallback: 1_048_576,
    description:
      'Buyers, and as many addresses of each limit, that a node remembers at a time, 8 bytes each, rounded up to a power of two; those who have waited longest are forgotten first.',
  },
  trustedProxies: {
    env: 'TRUSTED_PROXIES',
    flag: '--trusted-proxies <list>',
    schema: readable(parseTrustedProxies, TRUSTED_PROXIES_FORM),
    fallback: undefined,
    fallbackText: 'none',
    description:
      'Proxies in front of this node whose `FORWARDED_HEADER` is believed: their number, or their addresses and networks (`10.0.0.0/8,192.0.2.1`).',
  },
  forwardedHeader: {
    env: 'FORWARDED_HEADER',
    flag: '--forwarded-header <name>',
    schema: oneOf('x-forwarded-for', 'forwarded'),
    fallback: 'x-forwarded-for',
    description: 'Where they write who has asked them. The other header is not looked at.',
  },
  purchaseTokenTtlSeconds: {
    env: 'PURCHASE_TOKEN_TTL_SECONDS',
    flag: '--purchase-token-ttl-seconds <n>',
    schema: whole(1, 86_400),
    fallback: 300,
    description: 'How long a purchase token is good for.',
    shared: 'value',
  },
  purchaseTokenSecret: {
    env: 'PURCHASE_TOKEN_SECRET',
    schema: secret(32),
    fallback: undefined,
    fallbackText: 'a random one, kept in Postgres',
    description: 'Key of the purchase tokens, the same at all nodes, 32 characters or more.',
    shared: 'value',
  },
  purchaseTokenOtherSecret: {
    env: 'PURCHASE_TOKEN_OTHER_SECRET',
    schema: secret(32),
    fallback: undefined,
    description:
      'A second key whose tokens are accepted too: the next one, then the last one, while keys are changed.',
    shared: 'value',
  },
  challenge: {
    env: 'CHALLENGE',
    flag: '--challenge <pow|file>',
    schema: text,
    fallback: undefined,
    fallbackText: 'none',
    description:
      'What a buyer has to do for a purchase token: `pow`, a piece of work for his processor, or a JavaScript module whose exports `issue` and `verify` ask for something else, such as a captcha.',
    shared: 'file',
  },
  challengeBits: {
    env: 'CHALLENGE_BITS',
    flag: '--challenge-bits <n>',
    schema: whole(1, MAX_WORK_BITS),
    fallback: 18,
    description: 'Difficulty of `CHALLENGE=pow`: 2 to this power hashes on average.',
    shared: 'value',
  },
};
