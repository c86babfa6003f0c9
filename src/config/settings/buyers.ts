/** Settings of buyers: how they are identified, and what they may do. */
import { either, oneOf, plainUrl, secret, text } from '../values/schemas.ts';
import type { Secret, SecretUrl } from '../values/secret.ts';
import type { SettingTable } from './setting.ts';

export interface BuyersSettings {
  readonly buyerAuth: 'header' | 'jwt';
  readonly trustBuyerHeader: boolean;
  readonly jwtSecret: Secret | undefined;
  readonly jwtJwksUrl: SecretUrl | undefined;
  readonly jwtAudience: string | undefined;
  readonly jwtIssuer: string | undefined;
  readonly publicPayment: boolean;
  readonly publicOrderNotes: boolean;
}

export const buyersSettings: SettingTable<BuyersSettings> = {
  buyerAuth: {
    env: 'BUYER_AUTH',
    flag: '--buyer-auth <how>',
    schema: oneOf('header', 'jwt'),
    fallback: 'header',
    description:
      'How buyers are identified: `header` (`X-Buyer-Id`, set by a gateway) or `jwt` (claim `sub`).',
    shared: 'value',
  },
  trustBuyerHeader: {
    env: 'TRUST_BUYER_HEADER',
    flag: '--trust-buyer-header <0|1>',
    schema: either('1', '0'),
    fallback: false,
    fallbackText: '0',
    description:
      '1: only a gateway that sets `X-Buyer-Id` can reach `HOST`. Then `HOST` need not be the loopback. Also needed for a gateway on the same machine that forwards the shop’s `Host` header: without it, a request is refused if its `Host` does not name the loopback.',
  },
  jwtSecret: {
    env: 'JWT_SECRET',
    schema: secret(32),
    fallback: undefined,
    description: "HS256 key of the buyers' tokens, at least 32 characters.",
    shared: 'value',
  },
  jwtJwksUrl: {
    env: 'JWT_JWKS_URL',
    flag: '--jwt-jwks-url <url>',
    schema: plainUrl(),
    fallback: undefined,
    description: "URL of the key set (JWKS) of the buyers' tokens, instead of `JWT_SECRET`.",
    shared: 'value',
  },
  jwtAudience: {
    env: 'JWT_AUDIENCE',
    flag: '--jwt-audience <text>',
    schema: text,
    fallback: undefined,
    description: 'Claim `aud` that a token must have.',
    shared: 'value',
  },
  jwtIssuer: {
    env: 'JWT_ISSUER',
    flag: '--jwt-issuer <text>',
    schema: text,
    fallback: undefined,
    description: 'Claim `iss` that a token must have.',
    shared: 'value',
  },
  publicPayment: {
    env: 'PUBLIC_PAYMENT',
    flag: '--public-payment <0|1>',
    schema: either('1', '0'),
    fallback: false,
    fallbackText: '0',
    description:
      '1: buyers may mark their own orders paid and redeemed at the public port. For trials only: any buyer can then mark an order paid without paying.',
    shared: 'value',
  },
  publicOrderNotes: {
    env: 'PUBLIC_ORDER_NOTES',
    flag: '--public-order-notes <0|1>',
    schema: either('1', '0'),
    fallback: false,
    fallbackText: '0',
    description:
      '1: a purchase at the public port may have a `reference` and `metadata`, which are stored with the order. Only if nobody but the shop’s own systems can send purchases there: a buyer could store anything.',
    shared: 'value',
  },
};
