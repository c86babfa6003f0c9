import type { Config } from '../../config/config.ts';
import { isUnprotected } from '../../config/hosts.ts';
import { type Check, checksOf } from './check.ts';

const { ok, warn } = checksOf('buyers');

/** How buyers are known. Fetches nothing: who publishes the keys may count who asks for them. */
export function checkBuyers({
  buyerAuth,
  jwtJwksUrl,
}: Pick<Config, 'buyerAuth' | 'jwtJwksUrl'>): readonly Check[] {
  if (buyerAuth !== 'jwt' || jwtJwksUrl === undefined) return [];
  if (!isUnprotected(jwtJwksUrl.reveal())) return [ok('key set', `${jwtJwksUrl}`)];
  return [
    warn(
      'key set',
      `${jwtJwksUrl} is fetched without TLS from another machine`,
      'Use https in JWT_JWKS_URL: who can change the keys on their way can be any buyer.',
    ),
  ];
}
