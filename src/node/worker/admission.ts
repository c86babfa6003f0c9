/** Puts the parts of src/admission/ together: first the settings that a node's workers share, then each worker's part. */
import { randomBytes } from 'node:crypto';
import { mayBeProxy, parseTrustedProxies } from '../../admission/addresses.ts';
import { ChallengeCaller } from '../../admission/challenge.ts';
import { ConnectionBound } from '../../admission/connection-bound.ts';
import type { ForwardedHeader } from '../../admission/forwarded.ts';
import { HASH_KEY_BYTES } from '../../admission/keyed-hash.ts';
import { type PurchaseTokenSettings, PurchaseTokens } from '../../admission/purchase-token.ts';
import { RateLimiter, rateTable, type SharedRates } from '../../admission/rate-limiter.ts';
import { parseRatePolicy, type RatePolicy, SITE_SHARE, sitePolicy } from '../../admission/rate-policy.ts';
import { StreamBound } from '../../admission/stream-bound.ts';
import type { Config } from '../../config/config.ts';
import type { Secret } from '../../config/values/secret.ts';
import type { StreamLimit } from '../../http/public/public-server.ts';
import { type Limit, RateLimits } from '../../http/public/rate-limits.ts';
import type { TokenOutcome } from '../../http/public/token-route.ts';
import { addressOf } from '../../http/server/client-address.ts';
import { ANSWERED_ABOVE_SHARE } from '../../http/server/connections.ts';
import type { Database } from '../../postgres/database.ts';
import { readSharedKey, sharedKey } from '../../postgres/shared-keys.ts';
import { type ChallengeSettings, loadChallenge } from './challenge-module.ts';

interface SharedLimit extends SharedRates {
  readonly policy: RatePolicy;
}

/** Limits for an address, and for the /48 network of an IPv6 address. */
interface SharedAddressLimit {
  readonly address: SharedLimit;
  readonly site: SharedLimit;
}

/** Crosses a thread boundary, so plain values only; the tables are shared, not copied. */
export interface AdmissionSettings {
  readonly buyer: SharedLimit | undefined;
  readonly address: SharedAddressLimit | undefined;
  readonly connections: SharedAddressLimit | undefined;
  readonly trustedProxies: string | undefined;
  readonly forwardedHeader: ForwardedHeader;
  readonly tokens: PurchaseTokenSettings;
  readonly challenge: ChallengeSettings | undefined;
}

const TOKEN_KEY = 'purchase_token_key';
/**
 * Time to restart all nodes of a shop one after the other, when a secret replaces the key in Postgres. During it, tokens
 * signed with that key stay valid.
 */
const MOVE_WITHIN_S = 3_600;

/** The settings that all workers of a node share. */
export async function admissionSettings(config: Config, db: Database): Promise<AdmissionSettings> {
  const { challenge, challengeBits, rateLimitKeys } = config;
  return {
    buyer: sharedLimit(policyOf(config.rateLimitBuyer), rateLimitKeys),
    address: sharedAddressLimit(policyOf(config.rateLimitAddress), rateLimitKeys),
    connections: sharedAddressLimit(policyOf(config.rateLimitConnections), rateLimitKeys),
    trustedProxies: config.trustedProxies,
    forwardedHeader: config.forwardedHeader,
    tokens: await tokenSettings(config, db),
    challenge: challenge === undefined ? undefined : { challenge, challengeBits },
  };
}

function policyOf(setting: string | undefined): RatePolicy | undefined {
  return setting === undefined ? undefined : parseRatePolicy(setting)!;
}

function sharedLimit<P extends RatePolicy | undefined>(
  policy: P,
  keys: number,
): SharedLimit | (P & undefined) {
  return policy && { policy, table: rateTable(keys), key: randomBytes(HASH_KEY_BYTES) };
}

/** Many addresses fall into one /48 network, so the table of the networks may be smaller. */
function sharedAddressLimit(policy: RatePolicy | undefined, keys: number): SharedAddressLimit | undefined {
  return (
    policy && {
      address: sharedLimit(policy, keys),
      site: sharedLimit(sitePolicy(policy), Math.ceil(keys / SITE_SHARE)),
    }
  );
}

async function tokenSettings(config: Config, db: Database): Promise<PurchaseTokenSettings> {
  const { purchaseTokenSecret, purchaseTokenOtherSecret, purchaseTokenTtlSeconds: ttlSeconds } = config;
  const others = purchaseTokenOtherSecret ? [bytesOf(purchaseTokenOtherSecret)] : [];
  if (!purchaseTokenSecret) return { keys: [await sharedKey(db, TOKEN_KEY), ...others], ttlSeconds };
  const keys = [bytesOf(purchaseTokenSecret), ...others];
  const key = await readSharedKey(db, TOKEN_KEY);
  if (!key) return { keys, ttlSeconds };
  return { keys, ttlSeconds, outgoing: { key, untilMs: Date.now() + (MOVE_WITHIN_S + ttlSeconds) * 1_000 } };
}

function bytesOf(secret: Secret): Uint8Array {
  return new TextEncoder().encode(secret.reveal());
}

/** The admission checks of one worker. */
export interface Admission {
  readonly limits: RateLimits;
  readonly connections: ConnectionBound | undefined;
  readonly streams: StreamLimit | undefined;
  readonly tokens: PurchaseTokens;
  readonly challenge: ChallengeCaller | undefined;
}

/** @param fault is called with the error when the challenge fails @throws StockadeError if the challenge can't be loaded */
export async function openAdmission(
  settings: AdmissionSettings,
  fault: (error: unknown) => void,
): Promise<Admission> {
  const { forwardedHeader, tokens, challenge } = settings;
  const trustedProxies =
    settings.trustedProxies === undefined ? undefined : parseTrustedProxies(settings.trustedProxies);
  // Solutions to challenges that other nodes made with the outgoing key are still accepted.
  const keys = tokens.outgoing ? [...tokens.keys, tokens.outgoing.key] : tokens.keys;
  const loaded = challenge && (await loadChallenge(challenge, keys));
  const ofRequest = addressOf(trustedProxies, forwardedHeader);
  const ofConnections = settings.connections && {
    policy: settings.connections.address.policy,
    isExempt: (address: Uint8Array) => mayBeProxy(address, trustedProxies),
  };
  return {
    limits: new RateLimits({
      buyer: limit(settings.buyer),
      address: limit(settings.address?.address),
      site: limit(settings.address?.site),
      addressOf: ofRequest,
    }),
    connections:
      settings.connections &&
      new ConnectionBound({
        ...ofConnections!,
        addresses: settings.connections.address,
        sites: settings.connections.site,
        answeredAboveShare: ANSWERED_ABOVE_SHARE,
      }),
    streams: ofConnections && { bound: new StreamBound(ofConnections), addressOf: ofRequest },
    tokens: new PurchaseTokens(tokens),
    challenge: loaded && new ChallengeCaller(loaded, fault),
  };
}

function limit(shared: SharedLimit | undefined): Limit | undefined {
  return shared && { limiter: new RateLimiter(shared.policy, shared), policy: shared.policy };
}

/** Counts requests for purchase tokens by outcome. */
export class TokenCounts {
  readonly #counts = new Map<string, number>();

  answered(outcome: TokenOutcome): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
  }

  data(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}
