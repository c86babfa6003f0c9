import { statSync } from 'node:fs';
import { parseTrustedProxies } from '../admission/addresses.ts';
import type { Config } from './config.ts';
import { isLoopback } from './values/hosts.ts';

/** What must hold between settings that are each valid by themselves. */
interface Relation {
  /** Settings that it speaks of, the one to change first. It is looked at only if all of them could be read. */
  readonly of: readonly (keyof Config)[];
  readonly broken: (config: Config) => string | undefined;
}

export const relations: readonly Relation[] = [
  {
    of: ['workers', 'redisUrl'],
    broken: ({ workers, redisUrl }) =>
      workers > 1 && redisUrl === undefined
        ? `is ${workers}, but without REDIS_URL the stock lives inside one worker: set REDIS_URL, or WORKERS to 1`
        : undefined,
  },
  {
    of: ['host', 'buyerAuth', 'trustBuyerHeader'],
    broken: ({ host, buyerAuth, trustBuyerHeader }) =>
      buyerAuth === 'header' && !isLoopback(host) && !trustBuyerHeader
        ? `is ${host}, where anyone could send an X-Buyer-Id: set BUYER_AUTH=jwt, or TRUST_BUYER_HEADER=1 if only a gateway that sets the header can reach it`
        : undefined,
  },
  {
    of: ['buyerAuth', 'jwtSecret', 'jwtJwksUrl'],
    broken: ({ buyerAuth, jwtSecret, jwtJwksUrl }) => {
      // Whoever has a key for tokens believes that buyers show them: X-Buyer-Id, which anyone can write, must not count then.
      if (buyerAuth !== 'jwt')
        return jwtSecret !== undefined || jwtJwksUrl !== undefined
          ? `is ${buyerAuth}, but JWT_SECRET or JWT_JWKS_URL is set: set BUYER_AUTH=jwt, or take the key out`
          : undefined;
      if (jwtSecret === undefined && jwtJwksUrl === undefined)
        return 'is jwt, but there is no key: set JWT_SECRET or JWT_JWKS_URL';
      if (jwtSecret !== undefined && jwtJwksUrl !== undefined)
        return 'is jwt, and both JWT_SECRET and JWT_JWKS_URL are set: set one of them only';
      return undefined;
    },
  },
  {
    // With a number of proxies every connection counts as a proxy's, and none is limited.
    of: ['trustedProxies', 'rateLimitConnections'],
    broken: ({ trustedProxies, rateLimitConnections }) =>
      rateLimitConnections !== undefined &&
      trustedProxies !== undefined &&
      typeof parseTrustedProxies(trustedProxies) === 'number'
        ? `is ${trustedProxies}, a number, with which nobody's connections are counted for RATE_LIMIT_CONNECTIONS: name the proxies' networks`
        : undefined,
  },
  {
    of: ['sync', 'redisUrl'],
    broken: ({ sync, redisUrl }) =>
      !sync && redisUrl === undefined
        ? 'is off, but without REDIS_URL nobody else can carry the orders to Postgres: set REDIS_URL, or SYNC=on'
        : undefined,
  },
  {
    of: ['strategy', 'redisUrl'],
    broken: ({ strategy, redisUrl }) =>
      strategy === 'lock' && redisUrl === undefined
        ? 'is lock, but the locks are kept in Redis: set REDIS_URL, or STRATEGY to script'
        : undefined,
  },
  {
    of: ['webhookUrl', 'webhookSecret'],
    broken: ({ webhookUrl, webhookSecret }) =>
      webhookUrl !== undefined && webhookSecret === undefined
        ? 'is set, but there is no key to sign what is sent there: set WEBHOOK_SECRET'
        : undefined,
  },
  {
    of: ['challenge'],
    broken: ({ challenge }) =>
      challenge === undefined || challenge === 'pow' || isFile(challenge)
        ? undefined
        : `is ${JSON.stringify(challenge)}: must be pow, or the path of a JavaScript module, and there is no such file`,
  },
  {
    of: ['lockWork', 'strategy'],
    broken: ({ lockWork, strategy }) => {
      if (lockWork === undefined) return undefined;
      if (!isFile(lockWork))
        return `is ${JSON.stringify(lockWork)}: must be the path of a JavaScript module, and there is no such file`;
      return strategy === 'lock'
        ? undefined
        : 'is set, but it is done under the locks of STRATEGY=lock: set that too';
    },
  },
  {
    of: ['takeTimeoutMs', 'requestDeadlineMs'],
    broken: ({ takeTimeoutMs, requestDeadlineMs }) =>
      takeTimeoutMs >= requestDeadlineMs
        ? `is ${takeTimeoutMs}: must be below REQUEST_DEADLINE_MS, which is ${requestDeadlineMs}`
        : undefined,
  },
  {
    // The public port is shared between threads, so the second listener would not fail: it would get half the requests.
    of: ['opsPort', 'port'],
    broken: ({ opsPort, port }) =>
      opsPort === port && port !== 0
        ? `is ${opsPort}, and so is PORT: set one of them to another`
        : undefined,
  },
];

/** What no file can be called, and what may not be looked at, is none. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
