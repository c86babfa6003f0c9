import { statSync } from 'node:fs';
import { parseTrustedProxies } from '../admission/addresses.ts';
import type { Config } from './config.ts';
import { isLoopback } from './values/hosts.ts';

/** A condition on settings that are each valid by themselves. */
interface Relation {
  /** The settings in the condition; faults name the first. It is checked only if each of them is valid. */
  readonly of: readonly (keyof Config)[];
  /** The fault, as the end of a sentence that begins with the first setting; `undefined` if the condition holds. */
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
      // An operator who sets a key expects that buyers need tokens. With BUYER_AUTH=header anyone could buy as anyone.
      if (buyerAuth !== 'jwt')
        return jwtSecret !== undefined || jwtJwksUrl !== undefined
          ? `is ${buyerAuth}, but JWT_SECRET or JWT_JWKS_URL is set: set BUYER_AUTH=jwt, or unset the key`
          : undefined;
      if (jwtSecret === undefined && jwtJwksUrl === undefined)
        return 'is jwt, but there is no key: set JWT_SECRET or JWT_JWKS_URL';
      if (jwtSecret !== undefined && jwtJwksUrl !== undefined)
        return 'is jwt, and both JWT_SECRET and JWT_JWKS_URL are set: set one of them only';
      return undefined;
    },
  },
  {
    of: ['rateLimitAddress', 'buyerAuth', 'trustBuyerHeader', 'trustedProxies'],
    broken: (config) =>
      config.rateLimitAddress !== undefined && isGatewayUnnamed(config)
        ? `is ${config.rateLimitAddress}, ${AS_ONE}: set TRUSTED_PROXIES`
        : undefined,
  },
  {
    of: ['rateLimitConnections', 'buyerAuth', 'trustBuyerHeader', 'trustedProxies', 'host'],
    broken: (config) =>
      // Connections from this machine are not counted.
      config.rateLimitConnections !== undefined && isGatewayUnnamed(config) && !isLoopback(config.host)
        ? `is ${config.rateLimitConnections}, ${AS_ONE}: set TRUSTED_PROXIES to the gateway's address or network`
        : undefined,
  },
  {
    // If only the number of proxies is known, every connection may be a proxy's, so none is counted.
    of: ['trustedProxies', 'rateLimitConnections'],
    broken: ({ trustedProxies, rateLimitConnections }) =>
      rateLimitConnections !== undefined &&
      trustedProxies !== undefined &&
      typeof parseTrustedProxies(trustedProxies) === 'number'
        ? `is ${trustedProxies}, a number of proxies, with which RATE_LIMIT_CONNECTIONS has no effect: name the proxies' networks`
        : undefined,
  },
  {
    of: ['sync', 'redisUrl'],
    broken: ({ sync, redisUrl }) =>
      !sync && redisUrl === undefined
        ? 'is off, but without REDIS_URL no other process can copy the orders to Postgres: set REDIS_URL, or SYNC=on'
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
        ? 'is set, but there is no key to sign the requests: set WEBHOOK_SECRET'
        : undefined,
  },
  {
    of: ['challenge'],
    broken: ({ challenge }) =>
      challenge === undefined || challenge === 'pow' || isFile(challenge)
        ? undefined
        : `is ${JSON.stringify(challenge)}, but must be pow, or the path of a JavaScript module, and there is no such file`,
  },
  {
    of: ['lockWork', 'strategy'],
    broken: ({ lockWork, strategy }) => {
      if (lockWork === undefined) return undefined;
      if (!isFile(lockWork))
        return `is ${JSON.stringify(lockWork)}, but must be the path of a JavaScript module, and there is no such file`;
      return strategy === 'lock'
        ? undefined
        : 'is set, but works only under the locks of STRATEGY=lock: set that too';
    },
  },
  {
    of: ['otelExporterOtlpProtocol', 'otelTracesExporter'],
    broken: ({ otelExporterOtlpProtocol, otelTracesExporter }) =>
      otelTracesExporter === 'otlp' && otelExporterOtlpProtocol !== 'http/json'
        ? `is ${otelExporterOtlpProtocol}: traces are sent by http/json only. Unset it for this process and set an OTEL_EXPORTER_OTLP_ENDPOINT that takes http/json (for most collectors, the port 4318), or set OTEL_TRACES_EXPORTER=none`
        : undefined,
  },
  {
    of: ['takeTimeoutMs', 'requestDeadlineMs'],
    broken: ({ takeTimeoutMs, requestDeadlineMs }) =>
      takeTimeoutMs >= requestDeadlineMs
        ? `is ${takeTimeoutMs}, but must be below REQUEST_DEADLINE_MS, which is ${requestDeadlineMs}`
        : undefined,
  },
  {
    // Threads share the public port. So listening on it twice would not fail, but each listener would get half the requests.
    of: ['opsPort', 'port'],
    broken: ({ opsPort, port }) =>
      opsPort === port && port !== 0
        ? `is ${opsPort}, and so is PORT: set one of them to another port`
        : undefined,
  },
  {
    of: ['probePort', 'port', 'opsPort'],
    broken: ({ probePort, port, opsPort }) => {
      if (probePort === undefined || probePort === 0) return undefined;
      const taken = probePort === port ? 'PORT' : probePort === opsPort ? 'OPS_PORT' : undefined;
      return taken && `is ${probePort}, and so is ${taken}: set one of them to another port`;
    },
  },
];

const AS_ONE = 'but with TRUST_BUYER_HEADER=1 all buyers come from a gateway, and would share its address';

/** A gateway sets the buyers' header, and requests are counted under its own address. */
function isGatewayUnnamed({
  buyerAuth,
  trustBuyerHeader,
  trustedProxies,
}: Pick<Config, 'buyerAuth' | 'trustBuyerHeader' | 'trustedProxies'>): boolean {
  return buyerAuth === 'header' && trustBuyerHeader && trustedProxies === undefined;
}

/** False also if the path is invalid, or if this user may not look at it. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
