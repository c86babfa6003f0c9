import type { Config } from '../config/config.ts';
import { isUnprotected, notesInPublic, paysInPublic } from '../config/values/hosts.ts';
import type { Log } from './process/log.ts';

/** Warns of settings that may be meant, but are dangerous where strangers reach the node. */
export function warnOfExposure(config: Config, log: Log): void {
  warnOfUnprotectedKeys(config, log);
  warnOfPublicPayment(config, log);
  warnOfPublicNotes(config, log);
}

function warnOfUnprotectedKeys({ buyerAuth, jwtJwksUrl }: Config, log: Log): void {
  if (buyerAuth !== 'jwt' || jwtJwksUrl === undefined || !isUnprotected(jwtJwksUrl.reveal())) return;
  log.warn(
    { jwksUrl: jwtJwksUrl },
    "the keys that verify buyers' tokens are fetched without TLS from another machine: use https in JWT_JWKS_URL",
  );
}

function warnOfPublicPayment(config: Config, log: Log): void {
  if (!paysInPublic(config)) return;
  log.warn(
    { host: config.host },
    'PUBLIC_PAYMENT=1: every buyer who reaches HOST can mark orders paid and redeemed without paying: unset it',
  );
}

function warnOfPublicNotes(config: Config, log: Log): void {
  if (!notesInPublic(config)) return;
  log.warn(
    { host: config.host },
    'PUBLIC_ORDER_NOTES=1: every buyer who reaches HOST can store a reference and metadata with its orders: unset it, unless only the shop’s own systems reach HOST',
  );
}
