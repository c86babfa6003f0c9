import type { Config } from '../../config/config.ts';
import { isUnprotected, notesInPublic, paysInPublic } from '../../config/values/hosts.ts';
import { type Check, checksOf } from './check.ts';

const { ok, warn } = checksOf('buyers');

type BuyerSettings = Pick<Config, 'buyerAuth' | 'jwtJwksUrl' | 'publicPayment' | 'publicOrderNotes' | 'host'>;

/**
 * Checks how buyers are identified and what they may do. It does not fetch the key set, because its publisher may limit the
 * number of requests.
 */
export function checkBuyers(config: BuyerSettings): readonly Check[] {
  return [...checkKeySet(config), ...checkPayment(config), ...checkNotes(config)];
}

function checkPayment(config: BuyerSettings): readonly Check[] {
  if (!paysInPublic(config)) return [];
  return [
    warn(
      'payment',
      `PUBLIC_PAYMENT=1, and HOST is ${config.host}: every buyer can mark an order paid and redeemed without paying`,
      'Unset PUBLIC_PAYMENT, and let the shop report payments at the ops port.',
    ),
  ];
}

function checkNotes(config: BuyerSettings): readonly Check[] {
  if (!notesInPublic(config)) return [];
  return [
    warn(
      'order notes',
      `PUBLIC_ORDER_NOTES=1, and HOST is ${config.host}: every buyer who reaches it can store a reference and metadata with its orders`,
      'Let only the shop’s own systems reach HOST, or unset PUBLIC_ORDER_NOTES.',
    ),
  ];
}

function checkKeySet({ buyerAuth, jwtJwksUrl }: BuyerSettings): readonly Check[] {
  if (buyerAuth !== 'jwt' || jwtJwksUrl === undefined) return [];
  if (!isUnprotected(jwtJwksUrl.reveal())) return [ok('key set', `${jwtJwksUrl}`)];
  return [
    warn(
      'key set',
      `${jwtJwksUrl} is fetched without TLS from another machine`,
      'Use https in JWT_JWKS_URL: an attacker who can change the keys on their way can act as any buyer.',
    ),
  ];
}
